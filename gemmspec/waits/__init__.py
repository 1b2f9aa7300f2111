"""Waits that give up after a time and say where: what `compile --debug-waits` puts in place of waits without end."""

from gemmspec.waits.plan import LEAST_SECONDS, MAY_HANG_ELSEWHERE, MOST_SECONDS, SYMBOL, Waits

__all__ = ["LEAST_SECONDS", "MAY_HANG_ELSEWHERE", "MOST_SECONDS", "SYMBOL", "Waits"]
