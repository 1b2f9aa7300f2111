"""Protocol and trip counts -> straight-line code of every agent, with every slot, parity and guard a number.

Control flow never depends on data, so this loses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import takewhile

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
    Retire,
    Send,
    Slot,
    Statement,
    StoreCommit,
    StoreIssue,
    StoreWait,
    StoreWrite,
    Wait,
)
from gemmspec.vocabulary import LoopKind, Operand, RoleKind

from .code import SUM_BITS, Agent, Code, Do, Flight, Op, Pending, operand_stamp, sync_ops
from .exchange import exchange
from .warps import has_idle_warps


def unroll(protocol: Protocol, k: int, tiles: int, in_order: bool = True) -> Code:
    """Return the code of one cluster for `tiles` tiles of `k` k tiles.

    `in_order`: no commit arrives anywhere before an earlier one of its thread has arrived everywhere; otherwise
    this holds in each target CTA only.
    """
    assert k < SUM_BITS, "an accumulator's stamp has one bit for each k tile"
    return Unroller(protocol, k, tiles, in_order).run()


class Unroller:
    def __init__(self, protocol: Protocol, k: int, tiles: int, in_order: bool) -> None:
        self.p, self.k, self.tiles, self.in_order = protocol, k, tiles, in_order
        self.cluster, self.pair = protocol.spec.cluster, protocol.spec.pair
        self.tile_ctas, self.split = self.cluster.m * self.cluster.n, self.cluster.split
        self.code = Code(ctas=self.cluster.size)
        self.barrier_id: dict[tuple[str, int, int], int] = {}
        self.cell_id: dict[str, int] = {}
        self.queue_id: dict[tuple[int, int], int] = {}
        self.total: dict[tuple[int, int], int] = {}
        """MMAs on an accumulator cell in one tile."""
        self.parts = {
            o: max(
                (s.parts for q in protocol.programs for s in q.walk() if isinstance(s, Load) and s.operand is o),
                default=1,
            )
            for o in Operand
        }
        for plan in protocol.barriers:
            for cta in range(self.code.ctas):
                for slot in range(plan.slots):
                    self.barrier_id[plan.name, cta, slot] = len(self.code.barriers)
                    self.code.barriers.append((plan.name, cta, slot, plan.arrivals))

    def run(self) -> Code:
        code = self.code
        runs = [
            (program, i, cta)
            for program in self.p.programs
            for i in range(program.instances)
            for cta in range(code.ctas)
            if not program.leader_only or cta % self.pair == 0
        ]
        in_role = any(isinstance(s, BlockSync) for q in self.p.programs for s in q.walk())
        idle = [c for c in range(code.ctas) if in_role and has_idle_warps(self.p, c)]
        members = {("cluster", None): len(runs) + len(idle)}
        for cta in range(code.ctas):
            members["cta", cta] = sum(c == cta for _, _, c in runs) + idle.count(cta)
        walks = [Walk(self, q, i, c, n) for n, (q, i, c) in enumerate(runs)]
        code.agents = [w.agent for w in walks] + [Agent(f"idle warps of CTA {c}", c) for c in idle]
        for walk in walks:
            walk.record(lambda w, a: w.count(a))
        for walk in walks:
            walk.record(lambda w, a: w.emit(a))
            walk.finish()
        self._syncs(members)
        code.init = self.p.start_sync != "cluster"
        for agent in code.agents:
            code.ready.append((agent.cta,) if self.p.start_sync == "cta" else ())
            for op in agent.ops:
                agent.issued.append(agent.issued[-1] + (op.code == Do.MMA))
                if op.code == Do.MMA:
                    agent.mmas.append(op)
        return code

    def _syncs(self, members: dict[tuple[str, int | None], int]) -> None:
        """Number the syncs, and append the end's."""
        ids = {key: n for n, key in enumerate(members)}
        self.code.syncs = len(ids)
        for agent in self.code.agents:
            passed: dict[int, int] = {}
            if self.p.end_sync != "none":
                agent.ops += sync_ops(self.p.end_sync, f"{agent.name}: {self.p.end_sync} sync at the end")
            for i, op in enumerate(agent.ops):
                if op.code in (Do.SYNC_ARRIVE, Do.SYNC_WAIT):
                    key = ("cluster", None) if op.x == "cluster" else ("cta", agent.cta)
                    n = ids[key]
                    passed[n] = passed.get(n, 0) + (op.code == Do.SYNC_ARRIVE)
                    agent.ops[i] = op._replace(x=n, y=passed[n] * members[key])

    def cell(self, name: str, cta: int) -> int:
        key = f"{name} of CTA {cta}"
        if key not in self.cell_id:
            self.cell_id[key] = len(self.code.cells)
            self.code.cells.append((key, cta))
        return self.cell_id[key]

    def place(self, operand: Operand, cta: int) -> int:
        """Return which rows a CTA's own load of an operand fetches, as a number."""
        if operand is Operand.A:
            return cta % self.cluster.m + cta // self.tile_ctas * self.cluster.m
        return cta // self.cluster.m * self.pair + cta % self.pair

    def part(self, operand: Operand, cta: int) -> int:
        index = cta // self.cluster.m % self.cluster.n if operand is Operand.A else cta % self.cluster.m
        return index % self.parts[operand]

    def whose(self, operand: Operand, cta: int, consumer: int) -> int:
        """Return the number that stands for the rows of one operand tile."""
        # With multicast by parts the rows are those of the whole group: the part's cell stands for the loader.
        where = self.place(operand, cta)
        if self.parts[operand] > 1 and operand is Operand.B:
            where = cta // self.cluster.m
        return where * 16 + consumer

    def sum_of(self, cell: int, tile: int) -> tuple[int, int, int]:
        """Return what a finished accumulator must hold: its tile, the MMAs of the program, the k tiles of the GEMM."""
        return tile, self.total.get((cell, tile), 0), self.k


class Walk:
    """Walks one agent's program."""

    def __init__(self, u: Unroller, program: Program, instance: int, cta: int, number: int) -> None:
        self.u, self.program, self.instance, self.cta, self.number = u, program, instance, cta, number
        self.agent = Agent(f"{program.role.name}[{instance}] of CTA {cta}", cta)

    def record(self, act: Callable[[Walk, Action], None]) -> None:
        self.n = {c.id: 0 for c in self.program.cursors}
        self.depth = {c.id: c.depth for c in self.program.cursors}
        self.index: dict[LoopKind, tuple[int, int]] = {}
        self.ended: dict[LoopKind, int] = {}
        self.started: set[tuple[int, int]] = set()
        self.reading = self.issuing = 0
        self.groups: list[int] = []
        self.open = self.mmas = self.held = 0
        self.registers: tuple[int, ...] = ()
        self.added = -1
        self.act = act
        self.stored: Counter[tuple[int, int]] = Counter()
        self.body(self.program.body)

    def finish(self) -> None:
        """Say so unless the program stores each chunk of each tile once."""
        spec, role = self.u.p.spec, self.program.role
        if role.does(RoleKind.EPILOGUE):
            columns = spec.block.n.value * spec.pair
            chunk = role.chunk.value if role.chunk else min(64, columns)
            wanted = Counter((t, c) for t in range(self.u.tiles) for c in range(-(-columns // chunk // self.u.split)))
            if wanted != self.stored:
                self.out(Do.BAD, "output", text="not every chunk of every tile is stored once")

    def body(self, statements: tuple[Statement, ...]) -> None:
        for s in statements:
            if isinstance(s, Loop):
                base = {LoopKind.TILE: self.u.tiles, LoopKind.K: self.u.k}.get(s.kind, s.count or 0)
                n = max(base + s.offset, 0)
                outer = self.index.get(s.kind)
                for i in range(n):
                    self.index[s.kind] = (i, n)
                    self.body(s.body)
                    for c in s.advances:
                        self.n[c] += 1
                if outer is None:
                    self.index.pop(s.kind, None)
                else:
                    self.index[s.kind] = outer
                self.ended[s.kind] = n
            elif isinstance(s, Branch):
                i, n = self.index.get(s.kind, (0, 1))
                if (i == (0 if s.which == "first" else n - 1)) == s.equal:
                    self.body(s.body)
            else:
                self.act(self, s)

    def at(self) -> tuple[int, int]:
        """The tile and k tile at hand."""
        tile, k = (self.index[x][0] if x in self.index else self.ended.get(x, 0) for x in (LoopKind.TILE, LoopKind.K))
        return tile, k

    def slot(self, slot: Slot) -> int:
        ring = 0 if slot.cursor is None else (self.n[slot.cursor] - slot.lag) % self.depth[slot.cursor]
        return slot.const + slot.self_stride * self.instance + slot.cursor_stride * ring

    def acc(self, action: Mma | AccRead, cta: int) -> int:
        return self.u.cell(f"accumulator {self.slot(action.acc)}", cta)

    def file(self) -> int:
        return self.u.cell(f"registers of {self.agent.name}", self.cta)

    def mates(self) -> tuple[int, ...]:
        first = self.cta - self.cta % self.u.pair
        return tuple(range(first, first + self.u.pair)) if self.u.p.spec.paired else (self.cta,)

    def count(self, a: Action) -> None:
        if isinstance(a, Mma):
            for cta in self.mates():
                key = (self.acc(a, cta), self.at()[0])
                self.u.total[key] = self.u.total.get(key, 0) + 1

    def out(self, code: int, x: object, y: object = None, z: object = None, text: str = "") -> None:
        tile, k = self.at()
        chunk = f" chunk {self.index[LoopKind.CHUNK][0]}" if LoopKind.CHUNK in self.index else ""
        where = f"{self.agent.name} tile {tile} k {k}{chunk}: {text}"
        self.agent.ops.append(Op(code, x, y, z, where))

    def barrier(self, name: str, cta: int, slot: int) -> int | None:
        found = self.u.barrier_id.get((name, cta, slot))
        if found is None:
            self.out(Do.BAD, "bounds", text=f"no barrier {name}[{slot}] in CTA {cta}")
        return found

    def emit(self, a: Action) -> None:
        match a:
            case Wait():
                b = self.barrier(a.barrier, self.cta, self.slot(a.slot))
                c = a.slot.cursor
                wraps = 0 if c is None else (self.n[c] - a.slot.lag) // self.depth[c]
                parity = (a.phase ^ wraps) & 1
                if b is not None:
                    self.out(Do.WAIT, b, parity, text=f"wait {a.barrier}[{self.slot(a.slot)}] parity {parity}")
            case Arrive():
                for cta in a.targets.of(self.cta):
                    b = self.barrier(a.barrier, cta, self.slot(a.slot))
                    if b is not None and a.threads > 0:
                        self.out(Do.ARRIVE, b, a.threads, text=f"arrive x{a.threads} {self.u.code.barriers[b][:3]}")
            case Expect():
                if self.cta in self.u.p.barrier(a.barrier).targets.of(self.cta):
                    b = self.barrier(a.barrier, self.cta, self.slot(a.slot))
                    if b is not None:
                        self.out(Do.EXPECT, b, a.bytes, text=f"expect {a.bytes} {self.u.code.barriers[b][:3]}")
            case Commit():
                self._commit(a)
            case Load():
                self._load(a)
            case Mma():
                self._mma(a)
            case Retire():
                self.out(Do.DONE, self.mmas - a.pending, text=f"retire {a.pending}")
            case AccRead():
                self.held = self._drawn()
                cell, tile = self.acc(a, self.cta), self.at()[0]
                flight = self._flight((), cell, (), "tcgen05.ld", self.file())
                self.reading |= 1 << flight
                self.out(Do.READ, cell, self.u.sum_of(cell, tile), flight, "tcgen05.ld")
            case AccReadWait():
                self.out(Do.MASK, self.reading, text="wait::ld")
            case Send() | Add():
                exchange(self, a)
            case StoreWrite():
                cell = self._store(a.buffer)
                if self.u.split > 1 and self.added != self.at()[0]:
                    self.out(Do.BAD, "stale", text="the peers' parts of the sum have not been added")
                if self.u.p.spec.target.has_tmem and self.held != self._drawn():
                    self.out(Do.BAD, "stale", text="the registers do not hold the chunk that is stored")
                if not self.u.p.spec.target.has_tmem and not self.registers:
                    self.out(Do.BAD, "stale", text="nothing was computed into the registers")
                if cell is not None:
                    stale = tuple((c, self.u.sum_of(c, self.at()[0])) for c in self.registers)
                    self.out(Do.WRITE, cell, self._drawn(), (self.reading, stale, self.file()), "write store buffer")
            case StoreIssue():
                cell = self._store(a.buffer)
                self.stored[self.at()[0], self.index.get(LoopKind.CHUNK, (0, 1))[0]] += 1
                if cell is not None:
                    flight = self._flight((), cell, (), "the store's read")
                    self.open |= 1 << flight
                    self.out(Do.ISSUE, cell, self._drawn(), flight, "issue store")
            case StoreCommit():
                self.groups.append(self.open)
                self.open = 0
            case StoreWait():
                done = self.groups[: len(self.groups) - a.pending] if a.pending else self.groups
                self.out(Do.MASK, sum(done), text=f"wait_group.read {a.pending}")
            case BlockSync():
                self.agent.ops += sync_ops(a.scope, f"{self.agent.name} {self.at()}: {a.scope} sync")
            case _:
                pass  # fences and warpgroup syncs: no effect between whole role instances

    def _drawn(self) -> int:
        """The number of the chunk at hand, over the whole run."""
        chunk = self.index.get(LoopKind.CHUNK, (0, 1))[0]
        return self.at()[0] * 1024 + chunk + 1

    def _store(self, slot: Slot) -> int | None:
        n = self.slot(slot)
        if not 0 <= n < self.u.p.buffer("D").slots:
            self.out(Do.BAD, "bounds", text=f"no store buffer {n}")
            return None
        return self.u.cell(f"store buffer {n}", self.cta)

    def _flight(
        self,
        lands: tuple[tuple[int, int], ...],
        reads: int | None,
        counts: tuple[tuple[int, int], ...],
        text: str,
        fills: int | None = None,
    ) -> int:
        text = f"{self.agent.name} {self.at()}: end of {text}"
        self.u.code.flights.append(Flight(self.number, lands, reads, counts, text, fills))
        return len(self.u.code.flights) - 1

    def _commit(self, a: Commit) -> None:
        code, op = self.u.code, len(self.agent.ops)
        for cta in a.targets.of(self.cta):
            b = self.barrier(a.barrier, cta, self.slot(a.slot))
            if b is None:
                continue
            key = (self.number, cta)
            if key not in self.u.queue_id:
                self.u.queue_id[key] = len(code.queues)
                code.queues.append((*key, []))
            text = f"{self.agent.name} {self.at()}: commit arrives at {code.barriers[b][:3]}"
            own = self.u.queue_id[key]
            mine = [(q, sum(p.op < op for p in ps)) for q, (n, _, ps) in enumerate(code.queues) if n == self.number]
            after = tuple((q, n) for q, n in mine if self.u.in_order and q != own and n)
            code.queues[own][2].append(Pending(op, self.mmas, b, text, after))
        self.out(Do.COMMIT, None, text=f"commit {a.barrier}")

    def _load(self, a: Load) -> None:
        u, flights = self.u, []
        part = u.part(a.operand, self.cta)
        slots = u.p.buffer(a.operand.value).slots
        for cta in a.writes.of(self.cta):
            first = self.slot(a.slot)
            if cta >= u.code.ctas or first < 0 or first + a.count > slots:
                self.out(Do.BAD, "bounds", text=f"load of {a.operand.value} into slot {first} of CTA {cta}")
                continue
            lands = tuple(
                (
                    u.cell(f"{a.operand.value}[{first + i}] part {part}", cta),
                    operand_stamp(*self.at(), u.whose(a.operand, self.cta, a.first + i)),
                )
                for i in range(a.count)
            )
            if len(a.signals.of(cta)) > 1:
                self.out(Do.BAD, "impossible", text="what a load lands in one CTA counts on one barrier only")
            counted = (self.barrier(a.barrier, c, self.slot(a.barrier_slot)) for c in a.signals.of(cta))
            counts = tuple((b, a.bytes) for b in counted if b is not None)
            flights.append(self._flight(lands, None, counts, f"load {a.operand.value}[{first}] of CTA {cta}"))
        self.out(Do.LOAD, tuple(flights), text=f"load {a.operand.value}[{self.slot(a.slot)}]")

    def _mma(self, a: Mma) -> None:
        u, reads = self.u, []
        self.mmas += 1
        before = takewhile(lambda q: q is not self.program, u.p.programs)
        consumer = sum(q.instances for q in before if q.role.does(RoleKind.MMA)) + self.instance
        for cta in self.mates():
            for operand, slot, who in ((Operand.A, a.a, consumer), (Operand.B, a.b, 0)):
                n = self.slot(slot)
                if not 0 <= n < u.p.buffer(operand.value).slots:
                    self.out(Do.BAD, "bounds", text=f"MMA reads {operand.value}[{n}]")
                    continue
                for part in range(u.parts[operand]):
                    cell = u.cell(f"{operand.value}[{n}] part {part}", cta)
                    reads.append((cell, u.whose(operand, cta, who)))
        if not 0 <= self.slot(a.acc) < u.p.buffer("acc").slots:
            self.out(Do.BAD, "bounds", text=f"MMA into accumulator {self.slot(a.acc)}")
        accs = tuple(self.acc(a, cta) for cta in self.mates())
        tile = self.at()[0]
        first = (accs[0], tile) not in self.started
        self.started.add((accs[0], tile))
        if not u.p.spec.target.has_tmem or self.program.threads > 1:
            self.registers = accs
        self.out(Do.MMA, tuple(reads), accs, (tile, first), f"MMA stage {self.slot(a.b)}")
