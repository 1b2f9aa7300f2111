"""What a simulation found: numbers, a map of the output, and faults. Plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gemmspec.source import Span

RIGHT, WRONG, NAN, UNWRITTEN, UNSEEN = ".", "x", "N", "?", " "
LEGEND = {
    RIGHT: "right",
    WRONG: "wrong numbers",
    NAN: "NaN: read before it was written, or after it was given back",
    UNWRITTEN: "never stored",
    UNSEEN: "not simulated",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a role instance is: its statement, and the iterations of the loops around it."""

    role: str
    instance: int
    cta: int
    """Rank in the cluster."""
    warps: tuple[int, ...]
    """Which warps of the instance's warpgroup; empty for a role of one thread."""
    tile: int | None
    """How many tiles the cluster did before; None outside the loop over tiles."""
    coordinates: tuple[int, int] | None
    """Tile row and tile column of that tile."""
    k: int | None
    span: Span | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """One role instance that cannot go on. `barrier` and what follows are None where it waits for no mbarrier."""

    place: Place
    what: str
    """In words: `mma2tma[2] parity 1`, `sync warpgroup`, ..."""
    barrier: str | None = None
    slot: int | None = None
    parity: int | None = None
    phase: int | None = None
    """Phases that the barrier has completed."""
    arrivals: int | None = None
    """Arrivals that the phase still lacks."""
    bytes: int | None = None
    """Bytes that the phase still lacks; negative where more came than were expected."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that the hardware does not forgive.

    kind: `hazard` (a buffer that does not hold, all the time that it is read, what should be read: the result is
    NaN from there on; the first of each cluster is kept), or what stops the cluster: `hang`, `over-arrival`, `bytes`
    (more pending than an mbarrier counts), `uninitialised` (a barrier before its initialisation is visible),
    `exited` (shared memory of a CTA that is gone), `range` (a slot or CTA that is not there),
    `impossible` (what no instruction does).
    """

    kind: str
    message: str
    cluster: int
    place: Place | None = None
    other: Place | None = None
    """Who changed the buffer last, for a hazard."""
    waits: tuple[Waiting, ...] = ()
    finished: tuple[str, ...] = ()
    """Roles all of whose instances are through, for a hang."""
    cycle: tuple[str, ...] = ()
    """Roles that wait for each other in a ring, for a hang: each for the next, the last for the first."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run under one schedule. Equal for equal input: the same protocol, sizes, seed and options."""

    seed: int
    sizes: tuple[int, int, int]
    clusters: int
    """Clusters that were run."""
    tiles: int
    """Output tiles of those clusters together."""
    steps: int
    """Statements and completions of asynchronous operations that were interleaved."""
    relative_error: float
    """Frobenius norm of the difference from the reference over that of the reference; NaN where any element is."""
    map: tuple[str, ...]
    """One character a block of D (one accumulator), in rows, by `LEGEND`; large maps join blocks and show the worst."""
    wrong: int
    """Blocks of D that are not right."""
    blocks: int
    """Blocks of D that were simulated."""
    faults: tuple[Fault, ...]
    reference: str
    d: npt.NDArray[np.float32] = field(compare=False, repr=False)
    """The result, with NaN where nothing was stored."""

    @property
    def ok(self) -> bool:
        """Whether every block is right and nothing went wrong on the way."""
        return not self.faults and not self.wrong
