"""The closed sets of the language. Open sets (targets, rules, commands) are tables elsewhere.

Every use of these enums is a `match` that ends in `assert_never`, so the type checker names each place
that a new member must be handled. Imports nothing of gemmspec.
"""

from __future__ import annotations

from enum import Enum


class RoleKind(Enum):
    """What a role does, and so which standard program it has."""

    TMA = "tma"
    """Issues bulk tensor loads of A and B into shared memory. One elected thread."""
    MMA = "mma"
    """Issues matrix multiplies. sm_100a: one elected thread; sm_90a: a whole warpgroup (wgmma)."""
    EPILOGUE = "epilogue"
    """Moves the accumulator to D: one warpgroup of 128 threads."""


class Via(Enum):
    """How arrivals on an mbarrier come about."""

    TMA = "tma"
    """`mbarrier.arrive.expect_tx` by one thread, then `complete_tx` by the bulk loads (PTX ISA, mbarrier)."""
    COMMIT = "commit"
    """`tcgen05.commit`: one arrival when all earlier tcgen05.mma of the issuing thread are complete."""
    THREADS = "threads"
    """`mbarrier.arrive` by every thread of the role instance."""
    ELECTED = "elected"
    """`mbarrier.arrive` by one thread of the role instance."""


class DType(Enum):
    """Element types."""

    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"

    @property
    def bytes(self) -> int:
        """Size of one element in bytes."""
        return 4 if self is DType.F32 else 2


class Release(Enum):
    """When the epilogue gives the accumulator back."""

    READ = "read"
    """As soon as its last chunk is in registers."""
    STORE = "store"
    """After the last chunk has been handed to the TMA store."""


class Operand(Enum):
    """The inputs of the GEMM."""

    A = "A"
    B = "B"


class LoopKind(Enum):
    """What a loop of a program counts."""

    TILE = "tile"
    """Output tiles of this cluster: 0 or more, known only at run time."""
    K = "k"
    """k tiles of one output tile: 1 or more."""
    CHUNK = "chunk"
    """Column chunks of the accumulator: known from the spec."""
    FIXED = "fixed"
    """A number that is written in the program."""


class Group(Enum):
    """A set of CTAs of the cluster, seen from one CTA."""

    OWN = "own"
    LEADER = "leader"
    """The CTA of even rank of the own pair (cta_group::2); the own CTA where there are no pairs."""
    PAIR = "pair"
    ROW = "row"
    """The CTAs with the same M index: they share A."""
    COLUMN = "column"
    """The CTAs with the same N index: they share B."""
    CLUSTER = "cluster"
    CROSS = "cross"
    """ROW and COLUMN together: whom a stage release reaches when both operands are multicast."""
    PEERS = "peers"
    """The other CTAs that share the output tile (`split`), each with k tiles of its own."""
