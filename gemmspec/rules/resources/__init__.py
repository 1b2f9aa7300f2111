"""GS3xx: what a CTA has of each resource. (GS303 is not used: GS014 bounds the warpgroups.)"""

from gemmspec.rules.resources.gs301_smem_over_capacity import smem_over_capacity
from gemmspec.rules.resources.gs302_tmem_over_capacity import tmem_over_capacity
from gemmspec.rules.resources.gs304_warp_claimed_twice import warp_claimed_twice
from gemmspec.rules.resources.gs305_warpgroup_unclaimed import warpgroup_unclaimed
from gemmspec.rules.resources.gs306_register_budget import register_budget
from gemmspec.rules.resources.gs307_registers_differ_in_warpgroup import registers_differ_in_warpgroup
from gemmspec.rules.resources.gs308_cluster_size import cluster_size
from gemmspec.rules.resources.gs309_named_barriers_exhausted import named_barriers_exhausted
from gemmspec.rules.resources.gs310_accumulator_over_registers import accumulator_over_registers
from gemmspec.rules.resources.gs311_role_needs_whole_warpgroup import role_needs_whole_warpgroup
from gemmspec.rules.resources.gs312_register_count_not_settable import register_count_not_settable

RULES = (
    smem_over_capacity,
    tmem_over_capacity,
    warp_claimed_twice,
    warpgroup_unclaimed,
    register_budget,
    registers_differ_in_warpgroup,
    cluster_size,
    named_barriers_exhausted,
    accumulator_over_registers,
    role_needs_whole_warpgroup,
    register_count_not_settable,
)
