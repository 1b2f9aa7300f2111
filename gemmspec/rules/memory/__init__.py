"""2xx: stages, accumulators and store buffers, and who may touch them when."""

from gemmspec.rules.memory.gs201_read_before_written import read_before_written
from gemmspec.rules.memory.gs202_overwritten_while_in_use import overwritten_while_in_use
from gemmspec.rules.memory.gs203_write_write_race import write_write_race
from gemmspec.rules.memory.gs204_exit_with_work_in_flight import exit_with_work_in_flight
from gemmspec.rules.memory.gs205_store_buffer_reused_early import store_buffer_reused_early
from gemmspec.rules.memory.gs207_wrong_data import wrong_data
from gemmspec.rules.memory.gs208_not_visible import not_visible
from gemmspec.rules.memory.gs209_uninitialised_barrier import uninitialised_barrier
from gemmspec.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    read_before_written,
    overwritten_while_in_use,
    write_write_race,
    exit_with_work_in_flight,
    store_buffer_reused_early,
    wrong_data,
    not_visible,
    uninitialised_barrier,
)
