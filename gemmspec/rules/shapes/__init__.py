"""GS4xx: shapes and types that the target's instructions take."""

from gemmspec.rules.shapes.gs401_mma_shape import mma_shape
from gemmspec.rules.shapes.gs402_tma_box import tma_box
from gemmspec.rules.shapes.gs403_size_not_aligned import size_not_aligned
from gemmspec.rules.shapes.gs404_chunk_does_not_divide import chunk_does_not_divide
from gemmspec.rules.shapes.gs405_unsupported_operand_types import unsupported_operand_types
from gemmspec.rules.shapes.gs406_swizzle_row import swizzle_row
from gemmspec.rules.shapes.gs407_accumulator_without_epilogue import accumulator_without_epilogue
from gemmspec.rules.shapes.gs408_barrier_not_on_target import barrier_not_on_target
from gemmspec.rules.shapes.gs409_property_not_on_target import property_not_on_target
from gemmspec.rules.shapes.gs410_multicast_across_pair import multicast_across_pair

RULES = (
    mma_shape,
    tma_box,
    size_not_aligned,
    chunk_does_not_divide,
    unsupported_operand_types,
    swizzle_row,
    accumulator_without_epilogue,
    barrier_not_on_target,
    property_not_on_target,
    multicast_across_pair,
)
