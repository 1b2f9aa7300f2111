"""The Protocol: the exact program of every role in every CTA of one cluster.

Made by `derive`; read by the checker, the simulator and the code generator, so that what is proved is what is built.
The whole of it as a grammar (loops nest, everything else is flat):

    Protocol  = spec, barriers, buffers, programs, sync of start and end
    Program   = role, instances, where it runs, cursors, body
    body      = (Loop | Branch | Action)*
    Action    = Wait | Arrive | Expect | Commit                            mbarriers
              | Load | Mma | Retire | AccRead | AccReadWait                loads, multiplies, accumulators
              | Send | Add                                                 parts of a sum, between CTAs
              | StoreWrite | StoreIssue | StoreCommit | StoreWait          registers -> store buffer -> D
              | ProxyFence | TcgenFence | WarpgroupSync | BlockSync        order

Slots and parities are functions of cursors. A cursor counts the iterations completed by the loops that advance
it, over the whole life of the kernel; it is never reset, so a ring's state carries across tiles by construction.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from gemmspec.model.spec import Role, Spec
from gemmspec.protocol.plan import BarrierPlan
from gemmspec.protocol.targets import Targets
from gemmspec.record import record
from gemmspec.source import Span
from gemmspec.vocabulary import LoopKind, Operand


@record
class Cursor:
    """Position in a ring: `n` completed iterations give slot `n % depth` and wrap parity `n // depth & 1`."""

    id: int
    word: str
    """The language's word for it: `stage`, `acc`, `buffer`, or `phase` for depth 1."""
    depth: int


@record
class Slot:
    """const + self_stride * self + cursor_stride * ((n - lag) % depth), n and depth being the cursor's."""

    const: int
    self_stride: int
    cursor_stride: int
    cursor: int | None
    lag: int = 0


@record
class Loop:
    """Run `body` for every tile, k tile (plus `offset`), chunk, or `count` times; advance cursors each time."""

    kind: LoopKind
    count: int | None
    offset: int
    advances: tuple[int, ...]
    body: tuple[Statement, ...]
    span: Span


@record
class Branch:
    """Run `body` on the first or last iteration of the enclosing loop of a kind, or on all others (not `equal`)."""

    kind: LoopKind
    which: str
    equal: bool
    body: tuple[Statement, ...]
    span: Span


@record
class Wait:
    """`mbarrier.try_wait.parity` on the own CTA's barrier; parity = phase ^ wrap parity of the slot's cursor.

    PTX ISA, mbarrier.try_wait: passes when the phase of that parity has completed, so a fresh barrier lets
    parity 1 pass and blocks parity 0.
    """

    barrier: str
    slot: Slot
    phase: int
    span: Span


@record
class Arrive:
    """`mbarrier.arrive` by `threads` threads of the instance, on the barrier of each target CTA."""

    barrier: str
    slot: Slot
    threads: int
    targets: Targets
    span: Span


@record
class Expect:
    """`mbarrier.arrive.expect_tx` of `bytes` by one thread, in leader CTAs only: on the own barrier."""

    barrier: str
    slot: Slot
    bytes: int
    derived: int
    """The bytes that do arrive in one phase."""
    written: Span | None
    """Where `bytes` is stated, if it is."""
    span: Span


@record
class Commit:
    """`tcgen05.commit`: one arrival on each target's barrier once all earlier Mma of this thread are complete."""

    barrier: str
    slot: Slot
    targets: Targets
    span: Span


@record
class Load:
    """One bulk tensor load of `count` consecutive consumers' A tiles, or of B, into a stage.

    Asynchronous: the bytes land in `slot` .. `slot + count - 1` of the operand's buffer in each CTA of `writes`
    and are counted on the barrier of each CTA of `signals` of every CTA written. With multicast each CTA loads
    one of `parts` slices of the rows (its index in the group) for all.
    """

    operand: Operand
    first: int
    count: int
    slot: Slot
    rows: int
    """Rows of the box that this CTA loads (all `count` tiles together, over `parts`)."""
    bytes: int
    """Bytes that land in each CTA of `writes`."""
    parts: int
    barrier: str
    barrier_slot: Slot
    writes: Targets
    signals: Targets
    span: Span


@record
class Mma:
    """All MMA instructions of one k tile of one consumer. Reads A and B of the stage in every CTA of the pair,
    accumulates into the accumulator in every CTA of the pair. Asynchronous.

    `fresh`: the first k tile of the loop overwrites the accumulator instead of adding.
    """

    a: Slot
    b: Slot
    acc: Slot
    owner: int | None
    """The consumer whose accumulator it is; None is the own."""
    span: Span


@record
class Retire:
    """`wgmma.wait_group`: at most `pending` of this warpgroup's committed Mma are still in flight."""

    pending: int
    span: Span


@record
class AccRead:
    """`tcgen05.ld` of one chunk of columns of an accumulator. Asynchronous until AccReadWait."""

    acc: Slot
    owner: int | None
    span: Span


@record
class AccReadWait:
    """`tcgen05.wait::ld`: the registers of earlier AccRead of this thread hold their values."""

    span: Span


@record
class Send:
    """Each of the 128 threads writes the peers' shares of its accumulator registers into their receive buffers.

    To the same consumer of each CTA of `writes` (`st.shared::cluster`, generic proxy), into slot `slot` plus the
    sender's place among the owner's peers (`receive_slot`). Thread t writes what thread t of the owner reads.
    """

    slot: Slot
    acc: Slot
    writes: Targets
    span: Span


@record
class Add:
    """Each of the 128 threads adds the parts of all CTAs of its own share, in the order of the CTAs' shares.

    Reads slots `slot` .. `slot + parts - 1` of the own receive buffer and the accumulator registers, in which the sum
    then stands.
    """

    slot: Slot
    acc: Slot
    parts: int
    span: Span


@record
class StoreWrite:
    """Convert the chunk in registers and write it to the store buffer (generic proxy), all 128 threads."""

    buffer: Slot
    span: Span


@record
class StoreIssue:
    """Bulk tensor store of the store buffer to D, by one thread (async proxy reads the buffer)."""

    buffer: Slot
    span: Span


@record
class StoreCommit:
    """`cp.async.bulk.commit_group`, by the thread of StoreIssue."""

    span: Span


@record
class StoreWait:
    """`cp.async.bulk.wait_group.read`, by StoreIssue's thread: at most `pending` groups still read their buffers."""

    pending: int
    span: Span


@record
class ProxyFence:
    """`fence.proxy.async.shared::cta`: earlier generic writes of this thread are ordered before later async ones."""

    span: Span


class FenceSide(Enum):
    """Which `tcgen05.fence`."""

    BEFORE = "before_thread_sync"
    AFTER = "after_thread_sync"


@record
class TcgenFence:
    """`tcgen05.fence::*_thread_sync`: orders tcgen05 operations against the sync that follows or precedes."""

    side: FenceSide
    span: Span


@record
class WarpgroupSync:
    """`bar.sync id, 128` of the instance's warpgroup; id = `barrier` + self."""

    barrier: int
    span: Span


@record
class BlockSync:
    """A sync of the whole CTA (`scope` "cta") or cluster ("cluster") inside a role."""

    scope: str
    span: Span


Action = (
    Wait
    | Arrive
    | Expect
    | Commit
    | Load
    | Mma
    | Retire
    | AccRead
    | AccReadWait
    | Send
    | Add
    | StoreWrite
    | StoreIssue
    | StoreCommit
    | StoreWait
    | ProxyFence
    | TcgenFence
    | WarpgroupSync
    | BlockSync
)
Statement = Loop | Branch | Action


@record
class Program:
    """What each instance of a role runs. `threads`: 1 (an elected thread) or 128 (a warpgroup).

    `leader_only`: runs only in the leader CTA of each pair. `standard`: not written by the user.
    """

    role: Role
    instances: int
    threads: int
    leader_only: bool
    standard: bool
    cursors: tuple[Cursor, ...]
    body: tuple[Statement, ...]

    def walk(self) -> Iterator[Statement]:
        """Yield every statement, outer before inner, in order."""
        yield from walk(self.body)


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Yield every statement of a body, outer before inner, in order."""
    for statement in body:
        yield statement
        if isinstance(statement, Loop | Branch):
            yield from walk(statement.body)


class Space(Enum):
    """Where a buffer lives."""

    SMEM = "shared memory"
    TMEM = "tensor memory"
    REGISTERS = "registers"


@record
class Buffer:
    """A ring of equal slots in each CTA: A [stage][consumer], B [stage], acc [consumer][accumulator],
    D [epilogue instance][buffer], R [consumer][peer], where CTAs share a tile. `size`: bytes a slot in SMEM, columns a
    slot in TMEM, registers a thread else."""

    name: str
    space: Space
    slots: int
    size: int


@record
class Protocol:
    """Everything that one cluster does."""

    spec: Spec
    barriers: tuple[BarrierPlan, ...]
    buffers: tuple[Buffer, ...]
    programs: tuple[Program, ...]
    start_sync: str
    """After barrier initialisation: "cluster" where any barrier or buffer is reached from another CTA, else "cta"."""
    end_sync: str
    """Before exit and deallocation: "cluster", "cta", or "none"."""

    def barrier(self, name: str) -> BarrierPlan:
        """The plan of that name (it exists)."""
        return next(b for b in self.barriers if b.name == name)

    def buffer(self, name: str) -> Buffer:
        """The buffer of that name (it exists)."""
        return next(b for b in self.buffers if b.name == name)

    def program(self, role: str) -> Program:
        """The program of that role (it exists)."""
        return next(p for p in self.programs if p.role.name == role)
