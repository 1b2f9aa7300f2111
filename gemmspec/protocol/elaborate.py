"""Steps of one role -> its Program: slots and cursors made explicit, stores unfolded, fences placed.

The generator's duties (fences, elections, named barriers, the store sequence) are decided here and nowhere else,
so that the checker sees what the kernel will do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from gemmspec.model.spec import WARPGROUP_THREADS, Act, For, If, Ref, Role, Spec, Step
from gemmspec.protocol.draft import BarrierDraft
from gemmspec.protocol.program import (
    AccRead,
    AccReadWait,
    Add,
    Arrive,
    BlockSync,
    Branch,
    Commit,
    Cursor,
    Expect,
    FenceSide,
    Load,
    Loop,
    Mma,
    Program,
    ProxyFence,
    Retire,
    Send,
    Slot,
    Statement,
    StoreCommit,
    StoreIssue,
    StoreWait,
    StoreWrite,
    Targets,
    TcgenFence,
    Wait,
    WarpgroupSync,
    walk,
)
from gemmspec.protocol.standard import standard_program
from gemmspec.protocol.tile import Tiling, base_of
from gemmspec.source import Span
from gemmspec.vocabulary import Group, LoopKind, Operand, RoleKind, Via

# Named barrier 0 is __syncthreads; the epilogues' start at 10, clear of what libraries usually take.
FIRST_NAMED_BARRIER = 10
STAGES, ACCUMULATORS, BUFFERS = "stages", "accumulators", "buffers"
_WORDS = {STAGES: "stage", ACCUMULATORS: "acc", BUFFERS: "buffer"}


def elaborate(spec: Spec, role: Role, drafts: Mapping[str, BarrierDraft]) -> Program:
    """Return the Program of a role. Bytes of an `expect` that states none are 0 until `derive` counts the loads."""
    written = spec.program(role.name)
    steps = written.body if written else standard_program(spec, role)
    builder = _Builder(spec, role, drafts, _rings(spec, role, steps))
    body = builder.body(steps)
    if builder.tiling.buffers > 1 and any(isinstance(s, StoreIssue) for s in walk(body)):
        body += (StoreWait(0, role.span),)
    return Program(
        role=role,
        instances=role.instances,
        threads=WARPGROUP_THREADS if builder.warpgroup else 1,
        leader_only=spec.paired and role.does(RoleKind.MMA),
        standard=written is None,
        cursors=tuple(builder.cursors),
        body=body,
    )


def loops_of(steps: tuple[Step, ...]) -> Iterator[For]:
    """Yield every loop, outer before inner, in order: its place in this order is its number."""
    for step in steps:
        if isinstance(step, For):
            yield step
        if isinstance(step, For | If):
            yield from loops_of(step.body)


class _Rings:
    """The depth of each ring that a role uses, and the numbers of the loops that advance it."""

    def __init__(self) -> None:
        self.depth: dict[str, int] = {}
        self.loops: dict[str, tuple[int, ...]] = {}
        self.lagging: dict[str, tuple[int, ...]] = {}

    def use(self, ring: str, depth: int, loop: int, lag: int) -> None:
        self.depth[ring] = depth
        into = self.lagging if lag else self.loops
        into[ring] = tuple(sorted({*into.get(ring, ()), loop}))

    def settle(self) -> None:
        """Let a ring that is only looked back at advance with a sibling of its depth, else where it is used."""
        for ring, used in self.lagging.items():
            if ring not in self.loops:
                twins = [r for r in self.loops if self.depth[r] == self.depth[ring] > 1]
                self.loops[ring] = self.loops[twins[0]] if twins else used[:1]


def ring_of(spec: Spec, ref: Ref) -> tuple[str, int, int] | None:
    """Return the ring, depth and lag of the cursor in a reference's index; None where there is no cursor."""
    for term, factor in zip(ref.index, spec.barrier(ref.barrier).factors, strict=True):
        if term.kind == "cursor":
            ring = factor.text if factor.text in (STAGES, ACCUMULATORS) else ref.barrier
            return ring, factor.value, term.lag
    return None


def _rings(spec: Spec, role: Role, steps: tuple[Step, ...]) -> _Rings:
    rings = _Rings()
    tiling = Tiling.of(spec)
    number = -1

    def act(step: Act, loop: int) -> None:
        ring = ring_of(spec, step.ref) if step.ref else None
        if ring:
            rings.use(*ring[:2], loop, ring[2])
        elif step.ref and step.verb == "wait":
            rings.use(f"{step.ref.barrier} phase", 1, loop, 0)
        if step.verb in ("load", "mma"):
            rings.use(STAGES, tiling.stages, loop, step.stage.lag if step.stage else 0)
        if step.verb == "store":
            rings.use(BUFFERS, tiling.buffers, loop, 0)

    def scan(body: tuple[Step, ...], loop: int) -> None:
        nonlocal number
        for step in body:
            if isinstance(step, For):
                number += 1
                scan(step.body, number)
            elif isinstance(step, If):
                scan(step.body, loop)
            else:
                act(step, loop)

    scan(steps, 0)
    rings.settle()
    # An accumulator belongs to one tile, whichever loop names it.
    rings.depth[ACCUMULATORS], rings.loops[ACCUMULATORS] = tiling.accumulators, (0,)
    return rings


class _Builder:
    """Makes the statements of one role."""

    def __init__(self, spec: Spec, role: Role, drafts: Mapping[str, BarrierDraft], rings: _Rings) -> None:
        self.spec, self.role, self.drafts, self.rings = spec, role, drafts, rings
        self.tiling = Tiling.of(spec)
        self.warpgroup = role.does(RoleKind.EPILOGUE) or (role.does(RoleKind.MMA) and not spec.target.has_tmem)
        self.cursors: list[Cursor] = []
        self.advanced_by: list[tuple[int, ...]] = []
        self.loop = -1
        self.consumer = base_of(spec, role, RoleKind.MMA)
        self.writer = base_of(spec, role, RoleKind.EPILOGUE)
        # The accumulator that an epilogue instance reads is that of the consumer with its number.
        self.reads = self.consumer if role.does(RoleKind.MMA) else self.writer

    def body(self, steps: tuple[Step, ...]) -> tuple[Statement, ...]:
        out: list[Statement] = []
        for step in steps:
            match step:
                case For():
                    out.append(self._loop(step))
                case If():
                    out.append(Branch(step.kind, step.which, step.equal, self.body(step.body), step.head))
                case Act():
                    out.extend(self._act(step))
                case _:
                    assert_never(step)
        return tuple(out)

    def _loop(self, step: For) -> Loop:
        self.loop += 1
        number = self.loop
        body = self.body(step.body)
        advances = tuple(c.id for c, by in zip(self.cursors, self.advanced_by, strict=True) if number in by)
        count = self.tiling.chunks if step.kind is LoopKind.CHUNK else step.count
        return Loop(step.kind, count, step.offset, advances, body, step.head)

    def _cursor(self, ring: str) -> int:
        """Return the cursor of a ring. Rings of one depth that the same loops advance share one."""
        depth, loops = self.rings.depth[ring], self.rings.loops[ring]
        for cursor, by in zip(self.cursors, self.advanced_by, strict=True):
            if cursor.depth == depth and by == loops:
                return cursor.id
        word = "phase" if depth == 1 else _WORDS.get(ring, "stage")
        self.cursors.append(Cursor(len(self.cursors), word, depth))
        self.advanced_by.append(loops)
        return len(self.cursors) - 1

    def _slot(self, ref: Ref, need_phase: bool = False) -> Slot:
        """Return the barrier slot that an index names; the last factor varies fastest."""
        barrier = self.spec.barrier(ref.barrier)
        const = self_stride = cursor_stride = lag = 0
        stride = 1
        for term, factor in zip(reversed(ref.index), reversed(barrier.factors), strict=True):
            if term.kind == "self":
                self_stride = stride
            elif term.kind == "cursor":
                cursor_stride, lag = stride, term.lag
            else:
                const += stride * term.value
            stride *= factor.value
        ring = ring_of(self.spec, ref)
        cursor = self._cursor(ring[0]) if ring else None
        if cursor is None and need_phase:
            cursor = self._cursor(f"{ref.barrier} phase")
        return Slot(const, self_stride, cursor_stride, cursor, lag)

    def _stage(self, stride: int, lag: int, const: int = 0, self_stride: int = 0) -> Slot:
        return Slot(const, self_stride, stride, self._cursor(STAGES), lag)

    def _acc(self, owner: int | None, base: int) -> Slot:
        n = self.tiling.accumulators
        const = (base if owner is None else owner) * n
        return Slot(const, n if owner is None else 0, 1, self._cursor(ACCUMULATORS))

    def _buffer(self) -> Slot:
        n = self.tiling.buffers
        return Slot(self.writer * n, n, 1, self._cursor(BUFFERS))

    def _receive(self) -> Slot:
        n = self.tiling.split - 1
        return Slot(self.consumer * n, n, 0, None)

    def _act(self, step: Act) -> list[Statement]:
        span = step.span
        match step.verb:
            case "wait":
                return self._wait(_ref(step), span)
            case "arrive":
                return self._arrive(_ref(step), span)
            case "commit":
                ref = _ref(step)
                return [Commit(ref.barrier, self._slot(ref), self.drafts[ref.barrier].targets, span)]
            case "expect":
                ref = _ref(step)
                return [Expect(ref.barrier, self._slot(ref), step.number or 0, 0, span if step.number else None, span)]
            case "load":
                return self._loads(step)
            case "mma":
                lag = step.stage.lag if step.stage else 0
                c = self.tiling.consumers
                a = self._stage(c, lag, self.consumer, 1)
                return [Mma(a, self._stage(1, lag), self._acc(step.owner, self.consumer), step.owner, span)]
            case "read":
                return [AccRead(self._acc(step.owner, self.reads), step.owner, span), AccReadWait(span)]
            case "send":
                peers = Targets.group(Group.PEERS, self.spec.cluster, self.spec.pair)
                return [Send(self._receive(), self._acc(None, self.consumer), peers, span)]
            case "add":
                acc = self._acc(None, self.consumer)
                return [Add(self._receive(), acc, self.tiling.split - 1, span)]
            case "store":
                return self._store(span)
            case "retire":
                return [Retire(step.number or 0, span)]
            case "sync":
                if step.scope == "warpgroup":
                    return [WarpgroupSync(FIRST_NAMED_BARRIER + self.writer, span)]
                return [BlockSync(step.scope or "cta", span)]
            case verb:
                raise AssertionError(f"the resolver let through the verb {verb!r}")

    def _wait(self, ref: Ref, span: Span) -> list[Statement]:
        draft = self.drafts[ref.barrier]
        wait = Wait(ref.barrier, self._slot(ref, need_phase=True), draft.phase, span)
        # PTX ISA, tcgen05 memory consistency: tcgen05 operations of another thread that were ordered before its
        # arrival are ordered before ours only behind an after_thread_sync fence. TMA needs none: it is no tcgen05 op.
        touches = self.spec.target.has_tmem and not self.role.does(RoleKind.TMA)
        return [wait, TcgenFence(FenceSide.AFTER, span)] if touches and draft.via is not Via.TMA else [wait]

    def _arrive(self, ref: Ref, span: Span) -> list[Statement]:
        draft = self.drafts[ref.barrier]
        threads = WARPGROUP_THREADS if self.warpgroup and draft.via is not Via.ELECTED else 1
        arrive = Arrive(ref.barrier, self._slot(ref), threads, draft.targets, span)
        before = self.spec.target.has_tmem and self.role.does(RoleKind.EPILOGUE)
        return [TcgenFence(FenceSide.BEFORE, span), arrive] if before else [arrive]

    def _loads(self, step: Act) -> list[Statement]:
        spec, t, ref = self.spec, self.tiling, _ref(step)
        barrier_slot, signals = self._slot(ref), self.drafts[ref.barrier].targets
        ring = ring_of(spec, ref)
        lag = ring[2] if ring else 0
        own = Targets.group(Group.OWN, spec.cluster, spec.pair)
        out: list[Statement] = []

        def load(operand: Operand, first: int, count: int, slot: Slot, rows: int, size: int, parts: int) -> None:
            shared = Group.ROW if operand is Operand.A else Group.COLUMN
            writes = Targets.group(shared, spec.cluster, spec.pair) if parts > 1 else own
            out.append(
                Load(
                    operand, first, count, slot, rows // parts, size // parts, parts,
                    ref.barrier, barrier_slot, writes, signals, step.span,
                )
            )  # fmt: skip

        operands = step.operands or (Operand.A, Operand.B)
        c = t.consumers
        if Operand.A in operands:
            if step.instance is not None:
                load(Operand.A, step.instance, 1, self._stage(c, lag, step.instance), t.block_m, t.a_bytes, t.a_parts)
            elif not spec.paired and t.block_m * c <= spec.target.tma_box:
                # Consumers' rows are adjacent (protocol.tile.row_of) and so are their tiles in the stage.
                load(Operand.A, 0, c, self._stage(c, lag), t.block_m * c, t.a_bytes * c, t.a_parts)
            else:
                for i in range(c):
                    load(Operand.A, i, 1, self._stage(c, lag, i), t.block_m, t.a_bytes, t.a_parts)
        if Operand.B in operands:
            load(Operand.B, 0, 1, self._stage(1, lag), t.block_n, t.b_bytes, t.b_parts)
        return out

    def _store(self, span: Span) -> list[Statement]:
        buffer, sync = self._buffer(), WarpgroupSync(FIRST_NAMED_BARRIER + self.writer, span)
        write: list[Statement] = [StoreWrite(buffer, span), ProxyFence(span), sync]
        issue: list[Statement] = [StoreIssue(buffer, span), StoreCommit(span)]
        if self.tiling.buffers == 1:
            return [*write, *issue, StoreWait(0, span), sync]
        return [StoreWait(self.tiling.buffers - 1, span), sync, *write, *issue]


def _ref(step: Act) -> Ref:
    assert step.ref is not None, "the resolver gives every barrier verb its barrier"
    return step.ref
