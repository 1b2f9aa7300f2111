"""The Protocol's side: what an instance of a role does in one CTA, event by event.

Independent of the code generator: made from the Protocol and its tile arithmetic alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from gemmspec.audit.cases import Case, Sampling
from gemmspec.audit.events import RECEIVED, Event
from gemmspec.model.spec import WARPGROUP_THREADS
from gemmspec.protocol.derive import expects_in
from gemmspec.protocol.memory import tmem_map
from gemmspec.protocol.program import (
    AccRead,
    AccReadWait,
    Action,
    Add,
    Arrive,
    BlockSync,
    Branch,
    Commit,
    Expect,
    Load,
    Loop,
    Mma,
    Program,
    Protocol,
    ProxyFence,
    Retire,
    Send,
    Slot,
    Statement,
    StoreCommit,
    StoreIssue,
    StoreWait,
    StoreWrite,
    TcgenFence,
    Wait,
    WarpgroupSync,
)
from gemmspec.protocol.schedule import Tile
from gemmspec.protocol.tile import Tiling, b_row_of, base_of, chunk_of, column_of, depth_of, receive_slot, row_of
from gemmspec.vocabulary import LoopKind, Operand, RoleKind
from gemmspec.waits import Waits


@dataclass(frozen=True, slots=True)
class Expected:
    """An event that must come next. `single`: of one thread of the instance, else of each."""

    event: Event
    single: bool
    action: Action | Loop
    trips: tuple[tuple[LoopKind, tuple[int, int]], ...]
    """Where it stands in the loops around it."""

    @property
    def place(self) -> str:
        """The trips in words."""
        return ", ".join(f"{kind.value} {i}" for kind, (i, _) in self.trips)


class Expectation:
    """One instance in one CTA, followed through one case."""

    def __init__(
        self,
        protocol: Protocol,
        program: Program,
        rank: int,
        instance: int,
        case: Case,
        trips: Sampling,
        waits: Waits | None = None,
    ) -> None:
        self.protocol, self.spec, self.waits = protocol, protocol.spec, waits
        self.tiling = Tiling.of(protocol.spec)
        self.program, self.rank, self.instance = program, rank, instance
        self.case, self.trips = case, trips
        self.group = protocol.spec.pair
        self.part_rows = self.tiling.part_bytes // (16 * WARPGROUP_THREADS)
        """Rows of 16 bytes a thread in which a part of a sum is sent."""
        self.counts = [0] * len(program.cursors)
        self.depths = [c.depth for c in program.cursors]
        self.columns = [r.offset for r in tmem_map(protocol.spec)]
        role = program.role
        kind = RoleKind.MMA if role.does(RoleKind.MMA) else RoleKind.EPILOGUE
        self.consumer = base_of(protocol.spec, role, kind) + instance
        """Whose accumulator the registers hold."""
        self.inside: dict[LoopKind, tuple[int, int]] = {}
        self.tile: Tile = (0, 0)
        self.held = -1
        """The accumulator column of the first register."""
        self.loaded: dict[tuple[Operand, int], int] = {}
        self.begun: set[int] = set()
        self.out: list[Expected] = []

    def events(self) -> list[Expected]:
        """Return all events in order."""
        self._body(self.program.body)
        return self.out

    def _body(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            match statement:
                case Loop():
                    self._loop(statement)
                case Branch(kind, which, equal, inner):
                    i, n = self.inside.get(kind, (0, 1))
                    if (i == (0 if which == "first" else n - 1)) == equal:
                        self._body(inner)
                case action:
                    self._act(action)

    def _loop(self, loop: Loop) -> None:
        outer = self.inside.get(loop.kind)
        n = self._count(loop)
        if loop.kind in (LoopKind.K, LoopKind.FIXED):
            self._say(loop, self.program.threads == 1, "loop", (), n)
        last, before = -1, dict[tuple[Operand, int], int]()
        for i in self.trips(n) if loop.kind in (LoopKind.K, LoopKind.FIXED) else range(n):
            for key in self.loaded:
                # Trips that are left out load as the one before them did.
                self.loaded[key] += (i - last - 1) * (self.loaded[key] - before.get(key, -1))
            last, before = i, dict(self.loaded)
            self.inside[loop.kind] = (i, n)
            if loop.kind is LoopKind.TILE:
                self.inside[loop.kind] = (i, self.case.rounds)
                self.tile = self.case.taken[i]
                self.loaded.clear()
                self.begun.clear()
            self._body(loop.body)
            for cursor in loop.advances:
                self.counts[cursor] += 1
        if outer is None:
            self.inside.pop(loop.kind, None)
        else:
            self.inside[loop.kind] = outer

    def _count(self, loop: Loop) -> int:
        match loop.kind:
            case LoopKind.TILE:
                count = len(self.case.taken)
            case LoopKind.K:
                count = self.tiling.k_tiles(self.case.k)
            case LoopKind.CHUNK | LoopKind.FIXED:
                count = loop.count or 0
            case _:
                assert_never(loop.kind)
        return max(count + loop.offset, 0)

    def _slot(self, slot: Slot) -> int:
        fixed = slot.const + slot.self_stride * self.instance
        if slot.cursor is None or not slot.cursor_stride:
            return fixed
        return fixed + slot.cursor_stride * ((self.counts[slot.cursor] - slot.lag) % self.depths[slot.cursor])

    def _parity(self, slot: Slot, phase: int) -> int:
        wraps = 0 if slot.cursor is None else (self.counts[slot.cursor] - slot.lag) // self.depths[slot.cursor]
        return phase ^ wraps & 1

    def _say(self, action: Action | Loop, single: bool, verb: str, names: tuple[str, ...], *numbers: int) -> None:
        self.out.append(Expected(Event(verb, names, numbers), single, action, tuple(self.inside.items())))

    def _act(self, action: Action) -> None:
        one = self.program.threads == 1
        match action:
            case Wait(barrier, slot, phase):
                names, where = (
                    (self._barrier(barrier), ()) if self.waits is None else ((barrier,), self._reported(action))
                )
                self._say(action, one, "wait", names, self._slot(slot), self._parity(slot, phase), *where)
            case Load():
                self._load(action)
            case Expect(barrier, slot, size):
                if expects_in(self.protocol.barrier(barrier), self.rank):
                    self._say(action, True, "expect", (barrier,), self._slot(slot), self.rank, size)
            case Mma() if not self.columns:
                self._wgmma(action)
            case Mma(a, b, acc):
                t, column = self.tiling, self._acc_column(acc)
                rows = (self._slot(a) * t.block_m, t.block_m, self._slot(b) * t.block_n, t.block_n, t.block_k)
                # What a tile accumulates starts from nothing: its first Mma overwrites what the last tile left.
                fresh = int(column not in self.begun)
                self.begun.add(column)
                self._say(action, one, "mma", (), *rows, column, t.acc_columns, fresh, self.group)
            case Commit(barrier, slot, targets):
                mask = targets.masks[self.rank]
                self._say(action, one, "commit", (barrier,), self._slot(slot), mask, self.group)
            case Arrive(barrier, slot, threads, targets):
                each = [threads * (targets.masks[self.rank] >> r & 1) for r in range(self.spec.cluster.size)]
                self._say(action, threads == 1, "arrive", self._barrier(barrier), self._slot(slot), *each)
            case AccRead(acc):
                self.consumer = self._slot(acc) // self.tiling.accumulators
                self.held = self._acc_column(acc) + self._chunk_column()
                self._say(action, one, "read", (), self.held, self.tiling.chunk)
            case AccReadWait():
                self._say(action, one, "read wait", ())
            case Send():
                self._send(action)
            case Add():
                self._add(action)
            case StoreWrite(buffer):
                first, chunk = self._buffer_row(buffer), self.tiling.chunk
                if self.columns:
                    self._say(action, one, "write", (), first, 0, chunk, self.held)
                    return
                for row, register in self._halves():
                    # A register of each of 128 threads holds two columns of 64 rows.
                    held = register * 2 + self._chunk_column()
                    self._say(action, one, "write", (), first + row, 0, chunk, held)
            case StoreIssue(buffer):
                self._store(action, buffer)
            case StoreCommit():
                self._say(action, True, "store commit", ())
            case StoreWait(pending):
                self._say(action, True, "store wait", (), pending)
            case ProxyFence():
                self._say(action, one, "proxy fence", ())
            case TcgenFence(side):
                self._say(action, one, "tcgen05 fence", (side.value,))
            case WarpgroupSync(barrier):
                self._say(action, one, "warpgroup sync", (), barrier + self.instance, 128)
            case BlockSync(scope):
                self._say(action, one, "sync", (scope,))
            case Retire(pending):
                self._say(action, one, "retire", (), pending)
            case _:
                assert_never(action)

    def _barrier(self, name: str) -> tuple[str, ...]:
        """Return a barrier's name, and the scope of its waits and arrivals where that is not the CTA."""
        return (name, "cluster") if self.protocol.barrier(name).exchange else (name,)

    def _send(self, send: Send) -> None:
        """Say the stores of 16 bytes a thread: to which CTA and row of its receive buffers, from which register on."""
        shares = {self.spec.cluster.share(r): r for r in send.writes.of(self.rank)}
        for share, owner in sorted(shares.items()):
            first = self._slot(send.slot) + receive_slot(self.spec, self.rank, owner)
            for row, register in self._part(share):
                self._say(send, False, "send", (), owner, first * self.part_rows + row, register)

    def _part(self, share: int) -> list[tuple[int, int]]:
        """Return each row in which a share of the accumulator is sent, and the register from which it is filled."""
        halves = self._halves()
        rows = self.part_rows // len(halves)
        return [
            (i * rows + row, register + (share * rows + row) * 4)
            for i, (_, register) in enumerate(halves)
            for row in range(rows)
        ]

    def _add(self, add: Add) -> None:
        """Say the additions of 4 registers: to which, whether as the first, and what is added."""
        cluster, own = self.spec.cluster, self.spec.cluster.share(self.rank)
        for (row, held), (_, to) in zip(self._part(own), self._part(0), strict=True):
            for share in range(cluster.split):
                slot = self._slot(add.slot) + share - (share > own)
                part = RECEIVED + (slot * self.part_rows + row) * 4
                self._say(add, False, "add", (), to, int(share == 0), held if share == own else part)

    def _reported(self, wait: Wait) -> tuple[int, ...]:
        """Return what a bounded wait knows of itself: row, site, slot, tile, k, and the named barrier of agreement."""
        if self.waits is None:
            return ()
        tile, k = (self.inside.get(kind, (0, 1))[0] for kind in (LoopKind.TILE, LoopKind.K))
        row, named = self.waits.base(self.program) + self.instance, self.waits.agreement(self.program)
        agree = -1 if named is None else named + self.instance
        return row, self.waits.site(wait), self._slot(wait.slot), tile, k, agree

    def _acc_column(self, acc: Slot) -> int:
        consumer, accumulator = divmod(self._slot(acc), self.tiling.accumulators)
        return self.columns[consumer] + accumulator * self.tiling.acc_columns if self.columns else 0

    def _buffer_row(self, buffer: Slot) -> int:
        return self._slot(buffer) * self.tiling.block_m

    def _load(self, load: Load) -> None:
        spec, t, rank = self.spec, self.tiling, self.rank
        key = (load.operand, load.first)
        # Loads of one operand come in the order of the k tiles, wherever in the program they stand.
        depth = self.loaded[key] = self.loaded.get(key, -1) + 1
        if load.operand is Operand.A:
            row, to_row = row_of(spec, t, self.tile[0], rank, load.first), self._slot(load.slot) * t.block_m
        else:
            row, to_row = b_row_of(spec, t, self.tile[1], rank), self._slot(load.slot) * t.block_n
        written = load.writes.of(rank)
        part = written.index(rank) * load.rows if load.parts > 1 else 0
        signals = 0
        for cta in written:
            signals |= load.signals.masks[cta]
        column = depth_of(spec, t, self.case.k, rank, depth)
        numbers = (row + part, column, load.rows, t.block_k, to_row + part, 0)
        slot, writes = self._slot(load.barrier_slot), load.writes.masks[rank]
        names = (load.operand.value, load.barrier)
        self._say(load, True, "load", names, *numbers, slot, writes, signals, self.group)

    def _wgmma(self, mma: Mma) -> None:
        """Say the instructions of a k tile, of 64 rows and 16 columns each."""
        t, kind = self.tiling, self.spec.gemm.a.value.value
        a, b = self._slot(mma.a) * t.block_m, self._slot(mma.b) * t.block_n
        fresh = 0 not in self.begun
        self.begun.add(0)
        self._say(mma, False, "wgmma fence", ())
        for column in range(0, t.block_k, 16):
            adds = int(not fresh or column > 0)
            for row, register in self._halves():
                numbers = (a + row, column, b, column, adds, register)
                self._say(mma, False, "wgmma", (f"m64n{t.block_n}k16.{kind}",), *numbers)
        self._say(mma, False, "wgmma commit", ())

    def _halves(self) -> list[tuple[int, int]]:
        """Return the first row of each wgmma of a consumer's tile, and the first register of its accumulator."""
        t, rows = self.tiling, self.spec.target.mma_rows
        return [(row, row * t.block_n // WARPGROUP_THREADS) for row in range(0, t.block_m, rows)]

    def _store(self, action: StoreIssue, buffer: Slot) -> None:
        spec, t = self.spec, self.tiling
        row = row_of(spec, t, self.tile[0], self.rank, self.consumer)
        chunk = chunk_of(spec, t, self.rank, self._chunk())
        column = column_of(spec, t, self.tile[1], self.rank) + t.chunk_column(chunk)
        self._say(action, True, "store", (), row, column, t.block_m, t.chunk, self._buffer_row(buffer), 0)

    def _chunk(self) -> int:
        return self.inside.get(LoopKind.CHUNK, (0, 1))[0]

    def _chunk_column(self) -> int:
        return self.tiling.chunk_column(self._chunk())
