"""The spec with every name resolved: what the user asked for, and where each word of it stands.

Given by `resolve`, read by `gemmspec.protocol` and by the rules that need no protocol. A `Given` holds a value
and the span of the words that state it; `None` in place of a `Given` means that it was left out and is derived.
Plain frozen dataclasses rather than pydantic models: importing pydantic alone takes a third of lint's time budget.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from gemmspec.record import record
from gemmspec.source import Span
from gemmspec.targets import Target
from gemmspec.vocabulary import DType, Group, LoopKind, Operand, Release, RoleKind, Via

T = TypeVar("T")

WARPGROUP_THREADS = 128


@record
class Given(Generic[T]):
    """A value as written, and the words that state it (keyword and value)."""

    value: T
    span: Span


@record
class Size:
    """One of M, N, K in elements.

    `low == high` for a fixed size; `dynamic` sizes are known at run time only, within low..high.
    `typical`: the number in `M = 4096 dynamic`, to use where one is needed (simulation, bench).
    """

    name: str
    low: int
    high: int
    dynamic: bool
    span: Span
    typical: int | None = None

    @property
    def fixed(self) -> int | None:
        """The number, where there is only one."""
        return self.low if self.low == self.high else None


@record
class Gemm:
    """`D[M, N] = A[M, K] @ B[N, K]^T`, row-major, K innermost in both operands.

    `names`: what the spec calls D, A and B.
    """

    a: Given[DType]
    b: Given[DType]
    d: Given[DType]
    accumulate: DType
    span: Span
    names: tuple[str, str, str] = ("D", "A", "B")


@record
class Cluster:
    """CTAs along M, along N, and `split` for each output tile: rank is x + m * (y + n * share)."""

    m: int
    n: int
    span: Span
    split: int = 1

    @property
    def size(self) -> int:
        return self.m * self.n * self.split

    def x(self, rank: int) -> int:
        """Return the place of a CTA along M."""
        return rank % self.m

    def y(self, rank: int) -> int:
        """Return the place of a CTA along N."""
        return rank // self.m % self.n

    def share(self, rank: int) -> int:
        """Return which share of the k tiles, and of the chunks of D, is a CTA's."""
        return rank // (self.m * self.n)


@record
class Block:
    """Per CTA, consumer and stage: rows of A, rows of B, depth, in elements."""

    m: Given[int]
    n: Given[int]
    k: Given[int]
    span: Span


@record
class Schedule:
    """Persistent CTAs that walk the tiles in groups of `group` tile rows (L2 reuse), `split` of them for each tile."""

    kind: str
    ctas: Given[int] | None
    group: Given[int] | None
    span: Span
    split: Given[int] | None = None


@record
class Placement:
    """Where the instances of a role run: `warpgroups` first..last; `warps` first..last in a single warpgroup, or None.

    Warps are numbered within their warpgroup (0..3).
    """

    warpgroups: tuple[int, int]
    warps: tuple[int, int] | None
    span: Span

    @property
    def claimed(self) -> tuple[tuple[int, int], ...]:
        """The (warpgroup, warp) pairs that the placement takes."""
        first, last = self.warpgroups
        low, high = self.warps if self.warps is not None else (0, 3)
        return tuple((g, w) for g in range(first, last + 1) for w in range(low, high + 1))


@record
class Role:
    """Who does what, and on which warps.

    A tma role, and an mma role on a target with tensor memory, has one instance a warp where warps are
    named, else one a warpgroup (its first warp). Every other role has one instance a warpgroup.
    """

    name: str
    name_span: Span
    kinds: tuple[RoleKind, ...]
    placement: Placement
    chunk: Given[int] | None
    buffers: Given[int] | None
    registers: Given[int] | None
    release: Given[Release] | None
    multicast: Given[tuple[Operand, ...]] | None
    span: Span

    def does(self, kind: RoleKind) -> bool:
        return kind in self.kinds

    @property
    def instances(self) -> int:
        """How many instances run in each CTA (where the role runs at all)."""
        if self.placement.warps is not None:
            return self.placement.warps[1] - self.placement.warps[0] + 1
        return self.placement.warpgroups[1] - self.placement.warpgroups[0] + 1


@record
class SlotFactor:
    """One factor of a barrier's slot count: `stages`, `accumulators`, a role's name, or a number."""

    text: str
    value: int
    span: Span


@record
class At:
    """`at own`, `at leader`, `at cta N`: `cta` is the rank for the last form."""

    group: Group | None
    cta: int | None


@record
class Mask:
    """`multicast pair`, `multicast cluster`, ... or `multicast 0b11`: absolute ranks in the cluster."""

    group: Group | None
    bits: int | None


@record
class Barrier:
    """A set of mbarriers, one a slot and CTA. `sources` arrive; `waiters` wait. All names are of roles."""

    name: str
    name_span: Span
    factors: tuple[SlotFactor, ...]
    slots_span: Span
    sources: tuple[Given[str], ...]
    waiters: tuple[Given[str], ...]
    via: Given[Via] | None
    arrivals: Given[int] | None
    phase: Given[int] | None
    at: Given[At] | None
    multicast: Given[Mask] | None
    span: Span

    @property
    def slots(self) -> int:
        n = 1
        for factor in self.factors:
            n *= factor.value
        return n


@record
class Term:
    """One factor of an index: the role's cursor (`lag` iterations back), its instance number, or a number."""

    kind: str  # "cursor" | "self" | "const"
    value: int
    lag: int
    span: Span


@record
class Ref:
    """A barrier and a slot of it; `index` has as many terms as the barrier has factors."""

    barrier: str
    index: tuple[Term, ...]
    span: Span


@record
class For:
    """`for tile`, `for k - 1`, `for chunk`, `for 4`."""

    kind: LoopKind
    count: int | None
    offset: int
    body: tuple[Step, ...]
    head: Span
    span: Span


@record
class If:
    """Taken on the first or last iteration of the enclosing loop of that kind, or on all others (`equal` false)."""

    kind: LoopKind
    which: str  # "first" | "last"
    equal: bool
    body: tuple[Step, ...]
    head: Span
    span: Span


@record
class Act:
    """One action of a program.

    verb: wait arrive commit expect load mma read send add store retire sync.
    ref: the barrier and slot of wait, arrive, commit, expect, load.
    operands: what `load` loads (both where none is named). instance: `load A[1] ...` loads one consumer's A only.
    stage: `mma [stage - 1]`'s index into the stages. owner: `into 0` / `from 0`, whose accumulator; None is the own.
    number: bytes of expect, groups of retire. scope: of sync.
    """

    verb: str
    span: Span
    ref: Ref | None = None
    operands: tuple[Operand, ...] = ()
    instance: int | None = None
    stage: Term | None = None
    owner: int | None = None
    number: int | None = None
    scope: str | None = None


Step = For | If | Act


@record
class Program:
    """What a role does in place of its standard program."""

    role: str
    body: tuple[Step, ...]
    head: Span
    span: Span


@record
class Spec:
    """A whole spec. Role and barrier names are unique; each program's role exists."""

    name: str
    name_span: Span
    target: Target
    target_span: Span
    gemm: Gemm
    sizes: tuple[Size, Size, Size]
    cluster: Cluster
    block: Block
    stages: Given[int]
    accumulators: Given[int]
    schedule: Schedule
    roles: tuple[Role, ...]
    barriers: tuple[Barrier, ...]
    programs: tuple[Program, ...]

    def role(self, name: str) -> Role:
        """The role of that name (it exists)."""
        return next(r for r in self.roles if r.name == name)

    def barrier(self, name: str) -> Barrier:
        """The barrier of that name (it exists)."""
        return next(b for b in self.barriers if b.name == name)

    def roles_of(self, kind: RoleKind) -> tuple[Role, ...]:
        return tuple(r for r in self.roles if kind in r.kinds)

    @property
    def paired(self) -> bool:
        """Whether two CTAs run one MMA (cta_group::2): tensor memory, and an even number of CTAs along M."""
        return self.target.has_tmem and self.cluster.m % 2 == 0

    @property
    def pair(self) -> int:
        """CTAs that run one MMA together."""
        return 2 if self.paired else 1

    def program(self, role: str) -> Program | None:
        return next((p for p in self.programs if p.role == role), None)
