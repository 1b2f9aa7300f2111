"""Vector clocks, packed into one integer each: 24 bits a stream, so that a join is a handful of big-integer operations.

A clock says for each *stream* how much of it is known to be over. Streams are the agents themselves (their synchronous
actions), each agent's asynchronous engines (multiplies, tensor memory reads), and each mbarrier (its completed
phases). An access by entry `t` of stream `s` is ordered before an action whose clock has seen more than `t` of `s`.

Joins are what a proof does most; on lists of integers each took several times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

BITS: Final = 24
"""Of one stream: 23 for the count (far more than an execution has steps), one guard bit."""
MASK: Final = (1 << BITS - 1) - 1

Clock = int


def seen(clock: Clock, stream: int) -> int:
    """Return how much of a stream is known to be over."""
    return clock >> stream * BITS & MASK


def raised(clock: Clock, stream: int, count: int) -> Clock:
    """Return the clock with at least `count` of a stream known to be over."""
    more = count - seen(clock, stream)
    return clock + (more << stream * BITS) if more > 0 else clock


def joiner(streams: int) -> Callable[[Clock, Clock], Clock]:
    """Return the join (the greater count of each stream) of clocks of that many streams."""
    ones = sum(1 << BITS * i for i in range(streams))
    guards, counts = ones << BITS - 1, ones * MASK

    def join(a: Clock, b: Clock) -> Clock:
        # The guard bit of a stream survives the subtraction iff a's count is not the smaller one.
        kept = ((a | guards) - b) & guards
        wins = kept - (kept >> BITS - 1)
        return (a & wins) | (b & (counts ^ wins))

    return join
