"""Straight-line code of every agent, with every slot, parity and guard a number.

An agent is one role instance in one CTA: a list of operations. All that happens later and elsewhere (landings,
completions, arrivals of commits) hangs off positions in these lists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Do:
    """Operation codes. COMMIT, MASK, DONE and BAD touch nothing that another process can see."""

    WAIT = 0
    ARRIVE = 1
    EXPECT = 2
    LOAD = 3
    MMA = 4
    READ = 5
    WRITE = 6
    ISSUE = 7
    COMMIT = 8
    MASK = 9
    DONE = 10
    SYNC_ARRIVE = 11
    SYNC_WAIT = 12
    BAD = 13
    SEND = 14
    ADD = 15


PLACE_BITS, K_BITS = 10, 12
"""An operand tile's stamp is (tile, k tile, place) + 1, the place being whose rows and which consumer's."""
SUM_BITS = 24
"""An accumulator's stamp is (tile, number of MMAs since it was overwritten, one bit for each k tile added) + 1."""


def operand_stamp(tile: int, k: int, place: int) -> int:
    return (tile << K_BITS | k) << PLACE_BITS | place + 1


class Op(NamedTuple):
    """One operation. What `x`, `y`, `z` hold depends on the code:

    WAIT barrier, parity | ARRIVE barrier, threads | EXPECT barrier, bytes | LOAD flight ids |
    MMA (cell, place) read, accumulators, (tile, first) | READ cell, expected sum, flight id |
    WRITE cell, stamp, (reads pending before it, accumulators in registers, registers) | ISSUE cell, stamp, flight id |
    SEND (cell, stamp) written, accumulators in registers | ADD (cell, stamp) read, accumulators in registers |
    COMMIT | MASK flights that must be over | DONE least completed MMAs | SYNC_* sync, threshold | BAD kind
    """

    code: int
    x: Any
    y: Any = None
    z: Any = None
    text: str = ""


class Flight(NamedTuple):
    """Something asynchronous that ends on its own: a load in one CTA, a tcgen05.ld, the read of a store.

    `lands`: (cell, stamp) written at the end; `reads`: a cell read until the end; `counts`: (barrier, bytes);
    `fills`: the cell that stands for the registers that a tcgen05.ld fills.
    """

    agent: int
    lands: tuple[tuple[int, int], ...]
    reads: int | None
    counts: tuple[tuple[int, int], ...]
    text: str
    fills: int | None = None


class Pending(NamedTuple):
    """One arrival of a commit: after `op` has been issued and `done` MMAs of the agent are complete.

    `after`: (queue, number) of arrivals of earlier commits that come before this one.
    """

    op: int
    done: int
    barrier: int
    text: str
    after: tuple[tuple[int, int], ...] = ()


@dataclass
class Agent:
    """One role instance in one CTA. `issued[pc]`: MMAs issued before position pc."""

    name: str
    cta: int
    ops: list[Op] = field(default_factory=list)
    issued: list[int] = field(default_factory=lambda: [0])
    mmas: list[Op] = field(default_factory=list)


@dataclass
class Code:
    """All that a search needs, by number."""

    agents: list[Agent] = field(default_factory=list)
    barriers: list[tuple[str, int, int, int]] = field(default_factory=list)
    """(name, CTA, slot, arrivals)."""
    cells: list[tuple[str, int]] = field(default_factory=list)
    """(name, CTA)."""
    flights: list[Flight] = field(default_factory=list)
    queues: list[tuple[int, int, list[Pending]]] = field(default_factory=list)
    """(agent, target CTA, arrivals of commits in order)."""
    syncs: int = 0
    ctas: int = 1
    init: bool = False
    """Whether barrier initialisation is an event that other CTAs may overtake."""
    ready: list[tuple[int, ...]] = field(default_factory=list)
    """For each agent, the CTAs that must be initialised before it starts."""


def sync_ops(scope: str, text: str) -> list[Op]:
    """Return the two halves of a sync; their numbers are filled in when all agents are known."""
    return [Op(Do.SYNC_ARRIVE, scope, text=f"{text}: arrive"), Op(Do.SYNC_WAIT, scope, text=f"{text}: wait")]
