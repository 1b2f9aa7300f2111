"""What a timed replay found: times, who waited for what, and the blocks of a timeline. Plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a block of the timeline is. The value is the word in legends."""

    LOAD_A = "load of A"
    LOAD_B = "load of B"
    MMA = "MMA"
    READ = "read of the accumulator"
    WRITE = "conversion and write to shared memory"
    STORE = "store of D"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of the timeline: a role instance or an engine, of one CTA.

    `row`: its place below the lane of the same name (a stage of the loads), None for a lane of one row.
    """

    cta: int
    name: str
    row: int | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Something that takes from `start` to `end`, in cycles from the start of the kernel."""

    lane: Lane
    kind: Kind
    start: float
    end: float
    text: str
    """What stands on it: a stage, a chunk, a consumer."""
    detail: str
    """What it is, in words: `load of A into stage 2`, `wait for tma2mma[2]`."""
    tile: int
    """How many tiles the cluster did before."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long the instances of one role waited in the whole kernel, each on average, as parts of its time."""

    role: str
    instances: int
    """In all CTAs of the cluster."""
    busy: float
    """The part of the time in which it did not wait, and was not through."""
    by: tuple[tuple[str, float], ...]
    """What it waited for, and for how much of the time, the most first."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One kernel on one card. Times are of the whole kernel, launch included."""

    kernel: str
    device: str
    sizes: tuple[int, int, int]
    seconds: float
    launch: float
    """Seconds of these in which no CTA runs."""
    cycles: float
    """From the start of the CTAs to their end, at `ghz`."""
    ghz: float
    """The SM clock that the power cap leaves."""
    tflops: float
    """Useful floating-point operations over the time, in 10^12 a second."""
    utilisation: float
    """Useful floating-point operations over what all tensor cores of the card can do in `cycles`."""
    l2: float
    """Mean use of what L2 can deliver, over the cycles."""
    dram: float
    """Mean use of device memory."""
    clusters: int
    """That run at the same time."""
    waves: int
    """Tiles of the busiest cluster."""
    replayed: int
    """How many of these were replayed; the rest is the steady state continued."""
    without_tile: float
    """The part of the card's SMs that have no tile to work on, on average over the waves."""
    stalls: tuple[tuple[str, float], ...]
    """For what part of the time the replayed tensor cores were idle, by what their next MMA had waited for last."""
    waits: tuple[Waits, ...]
    tile_ends: tuple[float, ...]
    """When the last role was through with each replayed tile, in cycles."""
    blocks: tuple[Block, ...] = ()
    """The timeline, where it was asked for."""
