"""What an execution of the Protocol can show to be wrong: plain data, put into words by `gemmspec.rules`."""

from __future__ import annotations

from enum import Enum

from gemmspec.record import record
from gemmspec.source import Span


class Kind(Enum):
    """The ways in which a pipeline fails."""

    DEADLOCK = "deadlock"
    LAPPED = "lapped"
    """A barrier can complete two phases while a waiter looks at one parity."""
    AHEAD = "ahead"
    """A waiter can look at a parity whose last completion it does not know of, and pass at once."""
    MIXED_ARRIVALS = "mixed arrivals"
    """An arrival can fall into a phase that it does not belong to."""
    READ_EARLY = "read early"
    """A read is not ordered after the write of what it reads."""
    OVERWRITE = "overwrite"
    """A write is not ordered after the reads of what it overwrites."""
    WRITE_WRITE = "write write"
    """Two writes of one place are not ordered."""
    WRONG_DATA = "wrong data"
    """A place holds the data of another tile, k tile or chunk than its reader means."""
    NOT_VISIBLE = "not visible"
    """Ordered, but without the fence or sync that makes it visible to the other proxy or thread."""
    EARLY_EXIT = "early exit"
    """A CTA may end while an asynchronous operation on its memory or a remote arrival is in flight."""
    UNINITIALISED = "uninitialised"
    """A barrier of another CTA is used before its initialisation is known there."""


@record
class At:
    """An action of one agent at one moment."""

    role: str
    instance: int
    cta: int
    tile: int
    k: int
    span: Span
    action: str
    """What it does, in the language's words: `wait tma2mma[2]`."""


@record
class Blocked:
    """One edge of a deadlock: who waits, for which phase of which barrier, and what that phase still lacks."""

    at: At
    barrier: str
    slot: int
    phase: int
    """How many completions the wait needs."""
    completed: int
    pending: int
    """Arrivals that the current phase lacks."""
    bytes: int
    """Transaction bytes that the current phase lacks (negative: too many landed)."""
    lacking: tuple[At, ...] = ()
    """Where the agents stand that would arrive."""


@record
class Fault:
    """One thing that goes wrong, in the run where it was first seen.

    `at` acts wrongly; `other` is what it conflicts with. `place`: the buffer slot or barrier. `k_tiles`: the trip
    counts of the k loop for which it was seen; `every`: it was seen for every count that was tried; `onward`: for the
    last of them, too, which stands for all longer loops.
    """

    kind: Kind
    at: At
    other: At | None = None
    place: str = ""
    detail: str = ""
    cycle: tuple[Blocked, ...] = ()
    k_tiles: tuple[int, ...] = ()
    every: bool = False
    onward: bool = False
