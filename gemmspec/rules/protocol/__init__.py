"""1xx: waits, arrivals, phases and counts."""

from gemmspec.rules.protocol.gs110_deadlock import deadlock
from gemmspec.rules.protocol.gs111_initial_phase import initial_phase
from gemmspec.rules.protocol.gs112_arrival_count_mismatch import arrival_count_mismatch
from gemmspec.rules.protocol.gs113_tx_bytes_mismatch import tx_bytes_mismatch
from gemmspec.rules.protocol.gs114_multicast_mask_mismatch import multicast_mask_mismatch
from gemmspec.rules.protocol.gs115_arrival_at_wrong_cta import arrival_at_wrong_cta
from gemmspec.rules.protocol.gs116_unobserved_barrier import unobserved_barrier
from gemmspec.rules.protocol.gs117_wait_without_arrival import wait_without_arrival
from gemmspec.rules.protocol.gs118_ring_without_empty_barrier import ring_without_empty_barrier
from gemmspec.rules.protocol.gs119_impossible_arrival import impossible_arrival
from gemmspec.rules.protocol.gs120_phase_lapped import phase_lapped
from gemmspec.rules.protocol.gs121_sync_in_role import sync_in_role
from gemmspec.rules.protocol.gs122_ring_slots_differ import ring_slots_differ
from gemmspec.rules.protocol.gs123_trip_counts_disagree import trip_counts_disagree
from gemmspec.rules.protocol.gs124_arrival_in_wrong_phase import arrival_in_wrong_phase
from gemmspec.rules.protocol.gs125_use_without_wait import use_without_wait
from gemmspec.rules.protocol.gs126_ring_without_full_barrier import ring_without_full_barrier
from gemmspec.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    deadlock,
    initial_phase,
    arrival_count_mismatch,
    tx_bytes_mismatch,
    multicast_mask_mismatch,
    arrival_at_wrong_cta,
    unobserved_barrier,
    wait_without_arrival,
    ring_without_empty_barrier,
    impossible_arrival,
    phase_lapped,
    sync_in_role,
    ring_slots_differ,
    trip_counts_disagree,
    arrival_in_wrong_phase,
    use_without_wait,
    ring_without_full_barrier,
)
