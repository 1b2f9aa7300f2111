"""One warp of one role instance: it runs the Program, statement by statement.

A role of one thread is one warp here. A role of a warpgroup is four, that drift apart wherever the program lets
them; what one thread of it does (stores, single arrivals), the first warp does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import assert_never

from gemmspec.protocol.derive import expects_in
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
    TcgenFence,
    Wait,
    WarpgroupSync,
)
from gemmspec.protocol.schedule import Tile
from gemmspec.protocol.tile import base_of
from gemmspec.simulate import engines, exchange
from gemmspec.simulate.adversary import Entity
from gemmspec.simulate.barriers import ThreadBarrier
from gemmspec.simulate.engines import Multiply, Store, Team
from gemmspec.simulate.machine import WARPS_OF_WARPGROUP, Cta, Machine
from gemmspec.simulate.memory import NAN, empty
from gemmspec.simulate.outcome import Place
from gemmspec.simulate.problem import Array, rounded
from gemmspec.source import Span
from gemmspec.vocabulary import LoopKind, Operand, RoleKind, Via

Test = Callable[[], bool]


class Warp(Entity):
    """Runs `program` as one of its instances; without a program, a warp that has nothing to do.

    `first`: it initialises the CTA's barriers. `blocked`: the statement that it waits at, or "start" or "end".
    """

    def __init__(
        self, machine: Machine, cta: Cta, team: Team, program: Program | None, instance: int, number: int, first: bool
    ) -> None:
        super().__init__(machine.adversary, program.role.name if program else "idle", cta.rank)
        self.machine, self.cta, self.team = machine, cta, team
        self.program, self.instance, self.number = program, instance, number
        self.statement: Action | None = None
        self.blocked: Action | str | None = None
        self.finished = False
        self.solo = program is None or program.threads == 1
        height = machine.tiling.block_m
        quarter = slice(number * height // WARPS_OF_WARPGROUP, (number + 1) * height // WARPS_OF_WARPGROUP)
        self.rows = slice(0, height) if self.solo else quarter
        cursors = program.cursors if program else ()
        self._counts = [0] * len(cursors)
        self._depths = [c.depth for c in cursors]
        self._trips: dict[LoopKind, tuple[int, int]] = {}
        self._loaded: dict[tuple[Operand, int], int] = {}
        self._begun: set[int] = set()
        self.registers: dict[int, tuple[Array, int]] = {}
        self.reading = 0
        # tcgen05 operations may move up over a wait that no fence follows.
        self.unordered = False
        self.issued = 0
        self.unretired: list[Multiply] = []
        self._unfenced: list[tuple[int, Array]] = []
        self._sent: list[exchange.Flight] = []
        self._stores: list[Store] = []
        self._groups: list[list[Store]] = []
        role = program.role if program else None
        self._epilogue_base = base_of(machine.spec, role, RoleKind.EPILOGUE) if role else 0
        self._mma_base = base_of(machine.spec, role, RoleKind.MMA) if role else 0
        self._fused = role is not None and role.does(RoleKind.MMA)
        self.consumer = (self._mma_base if self._fused else self._epilogue_base) + instance
        self._accumulator = 0
        self._life = self._live(first)
        cta.live += 1
        machine.live += 1
        team.warps.append(self)
        self.wake()

    def step(self) -> bool:
        if self.finished:
            return False
        try:
            return next(self._life)
        except StopIteration:
            self.finished = True
            self.machine.live -= 1
            self.cta.exit()
            self.machine.sync.settle()
            return False

    # ---- where it is

    @property
    def tile(self) -> Tile:
        """Tile row and column that it works on."""
        return self.machine.tile(self._trips.get(LoopKind.TILE, (0, 0))[0])

    @property
    def chunk(self) -> int:
        """Which chunk of columns it works on."""
        return self._trips.get(LoopKind.CHUNK, (0, 0))[0]

    def place(self, span: Span | None) -> Place:
        """Return where it is now."""
        tile = self._trips.get(LoopKind.TILE)
        k = self._trips.get(LoopKind.K)
        return Place(
            self.kind,
            self.instance,
            self.cta.rank,
            () if self.solo else (self.number,),
            tile[0] if tile else None,
            self.machine.tile(tile[0]) if tile else None,
            k[0] if k else None,
            span,
        )

    def at(self, slot: Slot) -> int:
        """Return the number that a slot has now."""
        number = slot.const + slot.self_stride * self.instance
        if slot.cursor is not None:
            number += slot.cursor_stride * ((self._counts[slot.cursor] - slot.lag) % self._depths[slot.cursor])
        return number

    def parity(self, wait: Wait) -> int:
        """Return the parity that a wait waits for now."""
        slot = wait.slot
        wraps = 0 if slot.cursor is None else (self._counts[slot.cursor] - slot.lag) // self._depths[slot.cursor]
        return (wait.phase ^ wraps) & 1

    def next_load(self, operand: Operand, first: int) -> int:
        """Return the k tile that a load is for: they come in order, once a tile."""
        count = self._loaded.get((operand, first), 0)
        self._loaded[operand, first] = count + 1
        return count

    def begin_accumulating(self, acc: int) -> bool:
        """Return whether this is the tile's first Mma into an accumulator, which overwrites it."""
        self._accumulator = acc
        if acc in self._begun:
            return False
        self._begun.add(acc)
        return True

    # ---- what it does; generators yield whether it may go on at once

    def _live(self, first: bool) -> Iterator[bool]:
        protocol = self.machine.protocol
        if first:
            for slots in self.cta.barriers.values():
                for barrier in slots:
                    barrier.initialised = True
                    yield True
        yield from self._sync(protocol.start_sync, "start")
        if self.program:
            yield from self._body(self.program.body)
        yield from self._sync(protocol.end_sync, "end")

    def _sync(self, scope: str, where: str) -> Iterator[bool]:
        if scope == "none":
            return
        test = self._join(self.machine.sync if scope == "cluster" else self.cta.sync)
        while not test():
            self.blocked = where
            yield False
        self.blocked = None

    def _join(self, barrier: ThreadBarrier) -> Test:
        generation = barrier.join(self)
        return lambda: barrier.generation > generation

    def _body(self, body: tuple[Statement, ...]) -> Iterator[bool]:
        for statement in body:
            if isinstance(statement, Loop):
                yield from self._loop(statement)
            elif isinstance(statement, Branch):
                if self._taken(statement):
                    yield from self._body(statement.body)
            else:
                self.statement = statement
                test = self._act(statement)
                while test is not None and not test():
                    self.blocked = statement
                    yield False
                self.blocked = None
                yield True

    def _loop(self, loop: Loop) -> Iterator[bool]:
        outer = self._trips.get(loop.kind)
        trips = self._count(loop)
        for i in range(trips):
            self._trips[loop.kind] = (i, trips)
            if loop.kind is LoopKind.TILE:
                self._loaded.clear()
                self._begun.clear()
                self.registers.clear()
            yield from self._body(loop.body)
            for cursor in loop.advances:
                self._counts[cursor] += 1
        if outer is None:
            self._trips.pop(loop.kind, None)
        else:
            self._trips[loop.kind] = outer

    def _count(self, loop: Loop) -> int:
        match loop.kind:
            case LoopKind.TILE:
                count = len(self.machine.tiles)
            case LoopKind.K:
                count = self.machine.k_tiles
            case LoopKind.CHUNK | LoopKind.FIXED:
                count = loop.count or 0
            case _:
                assert_never(loop.kind)
        return count + loop.offset

    def _taken(self, branch: Branch) -> bool:
        i, trips = self._trips.get(branch.kind, (0, 1))
        return (i == (0 if branch.which == "first" else trips - 1)) is branch.equal

    def _act(self, action: Action) -> Test | None:
        """Do one action. Return a test if the warp must wait until it holds."""
        lead = self.solo or self.number == 0
        match action:
            case Wait():
                return self._wait(action)
            case Arrive():
                self._arrive(action)
            case Expect():
                if lead and expects_in(self.machine.plans[action.barrier], self.cta.rank):
                    barrier = self.cta.barrier(action.barrier, self.at(action.slot))
                    barrier.expect(action.bytes)
                    barrier.arrive(1)
            case Commit():
                if lead:
                    engines.commit(self, action)
            case Load():
                if lead:
                    engines.load(self, action)
            case Mma():
                if lead or not self.machine.spec.target.has_tmem:
                    engines.mma(self, action)
            case Retire(pending):
                return lambda: self._retire(pending)
            case AccRead():
                engines.read(self, action)
            case AccReadWait():
                return lambda: not self.reading
            case Send():
                self._sent += exchange.send(self, action)
            case Add():
                exchange.add(self, action)
            case StoreWrite():
                self._store_write(action)
            case StoreIssue():
                if lead:
                    self._stores.append(engines.store(self, action))
            case StoreCommit():
                if lead:
                    self._groups.append(self._stores)
                    self._stores = []
            case StoreWait(pending):
                return (lambda: self._drained(pending)) if lead else None
            case ProxyFence():
                self._show()
            case TcgenFence(side):
                self.unordered &= side is not FenceSide.AFTER
            case WarpgroupSync(number):
                exchange.land(self._sent, self.rows)
                return self._join(self.cta.named(number + self.instance))
            case BlockSync(scope):
                return self._join(self.machine.sync if scope == "cluster" else self.cta.sync)
            case _:
                assert_never(action)
        return None

    def _wait(self, action: Wait) -> Test:
        barrier = self.cta.barrier(action.barrier, self.at(action.slot))
        parity = self.parity(action)
        # The bytes of a load are no tcgen05 operation, so none is to be ordered against.
        tells = self.machine.spec.target.has_tmem and self.machine.plans[action.barrier].via is not Via.TMA

        def test() -> bool:
            if barrier.passes(parity):
                # A fresh barrier lets pass whoever waits for the phase before the first: nobody has done anything.
                self.unordered |= tells and barrier.phase > 0
                return True
            barrier.attend(self)
            return False

        return test

    def _arrive(self, action: Arrive) -> None:
        threads = action.threads
        if not self.solo:
            threads = threads // WARPS_OF_WARPGROUP + (self.number < threads % WARPS_OF_WARPGROUP)
        if threads:
            exchange.land(self._sent, self.rows)
            slot = self.at(action.slot)
            for target in action.targets.of(self.cta.rank):
                self.machine.cta(target).barrier(action.barrier, slot).arrive(threads)

    def _retire(self, pending: int) -> bool:
        while len(self.unretired) > pending and self.unretired[0].done:
            self.unretired.pop(0)
        return len(self.unretired) <= pending

    def _store_write(self, action: StoreWrite) -> None:
        machine, tiling = self.machine, self.machine.tiling
        values, self.consumer = self.registers.get(self.chunk, (None, self.consumer))
        if values is None:
            values = self._from_accumulator(tiling.chunk)
        slot = self.at(action.buffer)
        target = self.cta.d.of(slot)[self.rows]
        # Until a proxy fence, the async proxy may see what was there, or anything.
        target.fill(NAN)
        self.cta.d.version[slot] += 1
        self.cta.d.by[slot] = self.place(action.span)
        self._unfenced.append((slot, rounded(values, machine.spec.gemm.d.value)))

    def _from_accumulator(self, width: int) -> Array:
        """Return the chunk of this warp's own accumulator registers, which an Mma that is not retired still changes."""
        out = empty(self.rows.stop - self.rows.start, width)
        if self._fused and not self.machine.spec.target.has_tmem and not self.unretired:
            first = self.machine.tiling.chunk_column(self.chunk)
            columns = slice(first, first + width)
            source = self.cta.acc.of(self._accumulator)[self.rows, columns]
            out[:, : source.shape[1]] = source
        return out

    def own_registers(self, acc: int) -> Array:
        """Return this warp's rows of an accumulator; nothing while an Mma that is not retired still changes it."""
        values = self.cta.acc.of(acc)[self.rows]
        return empty(*values.shape) if self.unretired else values

    def _show(self) -> None:
        """Make generic writes visible to the async proxy."""
        for slot, values in self._unfenced:
            self.cta.d.of(slot)[self.rows] = values
            self.cta.d.version[slot] += 1
        self._unfenced.clear()

    def _drained(self, pending: int) -> bool:
        while len(self._groups) > pending and all(s.done for s in self._groups[0]):
            self._groups.pop(0)
        return len(self._groups) <= pending
