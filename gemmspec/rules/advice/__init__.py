"""GS5xx: what could be better. Advice is no finding: it leaves the exit status alone."""

from gemmspec.rules.advice.gs507_ragged_tiles import ragged_tiles

RULES = (ragged_tiles,)
