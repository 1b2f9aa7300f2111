"""GS5xx: what could be better in a pipeline that is sound. Advice is no finding: it leaves the exit status alone."""

from gemmspec.rules.advice.gs501_redundant_wait import redundant_wait
from gemmspec.rules.advice.gs502_redundant_barrier import redundant_barrier
from gemmspec.rules.advice.gs503_late_release import late_release
from gemmspec.rules.advice.gs504_idle_stages import idle_stages
from gemmspec.rules.advice.gs505_mma_waits_for_epilogue import mma_waits_for_epilogue
from gemmspec.rules.advice.gs506_idle_ctas_in_last_wave import idle_ctas_in_last_wave
from gemmspec.rules.advice.gs507_ragged_tiles import ragged_tiles

RULES = (
    redundant_wait,
    redundant_barrier,
    late_release,
    idle_stages,
    mma_waits_for_epilogue,
    idle_ctas_in_last_wave,
    ragged_tiles,
)
