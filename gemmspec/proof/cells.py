"""mbarriers and memory places, with what is known to whom.

A clock is a list of integers, one for each *stream*: how much of the stream is known to be over. Streams are the
agents themselves (their synchronous actions), each agent's asynchronous engines (multiplies, tensor memory reads,
stores), and each mbarrier (its completed phases). An access by entry `i` of stream `s` is ordered before an action
whose clock has `clock[s] > i`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gemmspec.proof.fault import At

Clock = list[int]


def join(into: Clock, other: Clock) -> None:
    """Let `into` know all that `other` knows."""
    into[:] = map(max, into, other)


@dataclass(frozen=True, slots=True)
class Entry:
    """An access or arrival: entry `index` of `stream`, made by agent `agent`."""

    stream: int
    index: int
    agent: int
    at: At


@dataclass(slots=True, eq=False)
class Cell:
    """The mbarrier of one slot in one CTA. PTX ISA, mbarrier: a phase completes when no arrivals and no bytes are pending."""

    barrier: str
    slot: int
    cta: int
    count: int
    stream: int
    pending: int
    clock: Clock
    bytes: int = 0
    """Transaction bytes expected less bytes landed, in the current phase."""
    completed: int = 0
    done: list[Clock] = field(default_factory=list[Clock])
    """For each completed phase, what is known to whoever sees that it has completed."""
    entries: list[Entry] = field(default_factory=list[Entry])
    """Arrivals and landings in the current phase."""
    before: list[Entry] = field(default_factory=list[Entry])
    """Those of the phase before."""
    waits: list[tuple[int, Entry]] = field(default_factory=list[tuple[int, Entry]])
    """(phase, wait): the wait must be over before that phase completes."""
    last_tile: list[int] = field(default_factory=list[int])
    """For each completed phase, the latest tile that an arrival belongs to."""
    sleepers: list[int] = field(default_factory=list[int])
    """Agents blocked on this cell."""
    joined: tuple[int, int] = (-1, -1)
    """(agent, version) whose clock was joined last."""
    loads: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """(tile, phase) of bytes that landed."""


@dataclass(slots=True, eq=False)
class Place:
    """One slot (or multicast slice of it) of a buffer in one CTA, or one accumulator."""

    name: str
    writer: Entry | None = None
    readers: list[Entry] = field(default_factory=list[Entry])
    tag: tuple[int, int] = (-1, -1)
    """(tile, k) of a stage; (tile, k tiles summed) of an accumulator."""
    written_order: int = -1
    """The writing agent's action count, for orders within one agent."""
