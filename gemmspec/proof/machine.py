"""Execute the Protocol once, for given trip counts, and say what goes wrong in *any* execution.

Agents are deterministic, and a wait that passes in one order of events passes in all (unless a phase can be lapped,
which is checked on the way), so one maximal execution with happens-before stands for every interleaving:
see docs/proof.md. Given a Protocol and counts, returns faults; puts nothing into words.
"""

from __future__ import annotations

from typing import Final

from gemmspec.proof.agents import Advance, Agent, Step, agents_of
from gemmspec.proof.cells import Cell, Entry, Place, join
from gemmspec.proof.fault import At, Blocked, Fault, Kind
from gemmspec.protocol.program import (
    AccRead,
    AccReadWait,
    Arrive,
    BarrierPlan,
    BlockSync,
    Commit,
    Expect,
    FenceSide,
    Load,
    Mma,
    Protocol,
    ProxyFence,
    Retire,
    Slot,
    StoreCommit,
    StoreIssue,
    StoreWait,
    StoreWrite,
    TcgenFence,
    Wait,
    WarpgroupSync,
)
from gemmspec.vocabulary import Operand

WORDS: Final[dict[type, str]] = {
    Wait: "wait", Arrive: "arrive", Commit: "commit", Expect: "expect", Load: "load", Mma: "mma", AccRead: "read",
    StoreWrite: "store", StoreIssue: "store", Retire: "retire",
}  # fmt: skip

Key = tuple[Kind, object, object, str]


class Machine:
    """One execution. `run` returns the faults, each kind and pair of places in the spec once."""

    def __init__(self, protocol: Protocol, k_tiles: int, tiles: int) -> None:
        self.protocol, self.k_tiles, self.tiles = protocol, k_tiles, tiles
        self.spec = protocol.spec
        self.agents = agents_of(protocol, k_tiles, tiles)
        self.faults: dict[Key, Fault] = {}
        streams = len(self.agents)
        for agent in self.agents:
            agent.mma_stream, agent.read_stream, agent.store_stream = streams, streams + 1, streams + 2
            streams += 3
        ctas = range(self.spec.cluster.size)
        self.cells: dict[tuple[str, int, int], Cell] = {}
        self.plans: dict[str, BarrierPlan] = {b.name: b for b in protocol.barriers}
        for plan in protocol.barriers:
            for cta in ctas:
                for slot in range(plan.slots):
                    self.cells[plan.name, cta, slot] = Cell(plan.name, slot, cta, plan.arrivals, streams, plan.arrivals, [])
                    streams += 1
        # The last streams are each CTA's barrier initialisation.
        self.init_stream = streams
        streams += len(ctas)
        for cell in self.cells.values():
            cell.clock = [0] * streams
        for agent in self.agents:
            agent.clock = [0] * streams
            for cta in ctas:
                if protocol.start_sync == "cluster" or cta == agent.cta:
                    agent.clock[self.init_stream + cta] = 1
            agent.tmem_clock = agent.clock.copy()
        self.places: dict[tuple[str, int, int, int], Place] = {}
        self.ready: list[int] = []
        self.tmem = self.spec.target.has_tmem
        t = self.spec.cluster
        self.pair_of = [tuple(range(c - c % self.spec.pair, c - c % self.spec.pair + self.spec.pair)) for c in range(t.size)]
        self.consumers = protocol.buffer("A").slots // max(protocol.buffer("B").slots, 1)
        self.chunks = max((s.count or 0 for p in protocol.programs for s in p.walk() if hasattr(s, "count") and
                           getattr(getattr(s, "kind", None), "value", "") == "chunk"), default=0)

    # -- running -----------------------------------------------------------------------------------------------

    def run(self) -> dict[Key, Fault]:
        """Execute until every agent has ended or none can go on; return the faults by kind and places in the spec."""
        self.ready = list(range(len(self.agents) - 1, -1, -1))
        while self.ready:
            self._advance(self.agents[self.ready.pop()])
        stuck = [a for a in self.agents if not a.finished]
        if stuck:
            self._deadlock(stuck)
        else:
            self._check_end()
        return self.faults

    def _advance(self, agent: Agent) -> None:
        items = agent.tile_items
        while True:
            if agent.tile >= agent.tiles:
                items = agent.tail
            while agent.position < len(items):
                item = items[agent.position]
                if isinstance(item, Advance):
                    for cursor in item.cursors:
                        agent.counts[cursor] += 1
                elif not self._do(agent, item):
                    return
                agent.position += 1
            agent.position = 0
            if items is agent.tail:
                agent.finished = True
                return
            self._end_tile(agent)
            agent.tile += 1
            if agent.tile >= agent.tiles and not agent.tail:
                agent.finished = True
                return

    def _do(self, agent: Agent, step: Step) -> bool:
        """Take one action; False if it has to wait."""
        action = step.action
        agent.order += 1
        match action:
            case Wait():
                return self._wait(agent, step, action)
            case Load():
                self._load(agent, step, action)
            case Expect():
                if agent.cta in self.plans[action.barrier].targets.of(agent.cta):
                    cell = self._cell(action.barrier, agent.cta, agent, action.slot)
                    cell.bytes += action.bytes
                    self._arrive(agent, step, cell, 1, agent.index, agent.clock[agent.index])
                    self._release(agent)
            case Arrive():
                self._arrive_threads(agent, step, action)
            case Commit():
                self._commit(agent, step, action)
            case Mma():
                self._mma(agent, step, action)
            case Retire():
                agent.clock[agent.mma_stream] = max(agent.mmas - action.pending, agent.clock[agent.mma_stream])
                agent.version += 1
            case AccRead():
                self._acc_read(agent, step, action)
            case AccReadWait():
                agent.reads_done = agent.reads
            case StoreWrite():
                self._store_write(agent, step, action)
            case StoreIssue():
                self._store_issue(agent, step, action)
            case StoreCommit():
                agent.groups += agent.open_group
                agent.open_group = False
            case StoreWait():
                agent.clock[agent.store_stream] = max(agent.clock[agent.store_stream], agent.groups - action.pending)
                agent.last_store_wait = agent.order
                agent.version += 1
            case ProxyFence():
                agent.last_fence = agent.order
            case TcgenFence():
                if action.side is FenceSide.AFTER:
                    agent.tmem_clock = agent.clock.copy()
                else:
                    agent.clock[agent.read_stream] = agent.reads_done
                    agent.version += 1
            case WarpgroupSync():
                agent.last_sync = agent.order
            case BlockSync():
                pass  # rule GS121: it can't be passed
        return True

    # -- barriers ----------------------------------------------------------------------------------------------

    def _cell(self, barrier: str, cta: int, agent: Agent, slot: Slot) -> Cell:
        plan = self.plans[barrier]
        return self.cells[barrier, cta, agent.slot(slot) % plan.slots]

    def _wait(self, agent: Agent, step: Step, wait: Wait) -> bool:
        cell = self._cell(wait.barrier, agent.cta, agent, wait.slot)
        turn = agent.wraps(wait.slot)
        needed = turn + 1 - wait.phase
        if cell.completed < needed:
            agent.order -= 1
            cell.sleepers.append(agent.index)
            return False
        if needed > 0:
            join(agent.clock, cell.done[needed - 1])
            agent.version += 1
            if cell.last_tile[needed - 1] > agent.tile:
                self._fault(Kind.DEADLOCK, agent, step, None, cell.barrier, "later tile")
        if agent.clock[cell.stream] < needed - 1:
            self._fault(Kind.AHEAD, agent, step, None, f"{cell.barrier}[{cell.slot}]")
        if cell.completed > needed:
            self._fault(Kind.LAPPED, agent, step, cell.before[-1].at if cell.before else None, f"{cell.barrier}[{cell.slot}]")
        else:
            cell.waits.append((needed, self._entry(agent, step)))
        agent.clock[cell.stream] = max(agent.clock[cell.stream], needed)
        return True

    def _arrive_threads(self, agent: Agent, step: Step, arrive: Arrive) -> None:
        if arrive.threads == 1 and agent.program.threads > 1 and agent.last_read_order > agent.last_sync:
            self._fault(Kind.NOT_VISIBLE, agent, step, None, arrive.barrier, "elected release before the warpgroup sync")
        for cta in arrive.targets.of(agent.cta):
            cell = self._cell(arrive.barrier, cta, agent, arrive.slot)
            self._arrive(agent, step, cell, arrive.threads, agent.index, agent.clock[agent.index])
        self._release(agent)

    def _commit(self, agent: Agent, step: Step, commit: Commit) -> None:
        # tcgen05.commit tracks every earlier multiply of this thread, and implies fence::before_thread_sync.
        own = agent.clock[agent.mma_stream]
        agent.clock[agent.mma_stream] = agent.mmas
        for cta in commit.targets.of(agent.cta):
            cell = self._cell(commit.barrier, cta, agent, commit.slot)
            cell.joined = (-1, -1)
            self._arrive(agent, step, cell, 1, agent.mma_stream, agent.mmas)
        agent.clock[agent.mma_stream] = own
        self._release(agent)

    def _release(self, agent: Agent) -> None:
        agent.clock[agent.index] += 1
        agent.version += 1

    def _arrive(self, agent: Agent, step: Step, cell: Cell, threads: int, stream: int, index: int) -> None:
        self._belongs(agent, step, cell)
        self._publish(agent, cell)
        cell.entries.append(Entry(stream, index, agent.index, self._at(agent, step)))
        if threads > cell.pending:
            self._fault(Kind.MIXED_ARRIVALS, agent, step, cell.entries[0].at, f"{cell.barrier}[{cell.slot}]", "too many")
        for _ in range(threads // max(cell.count, 1) + 1):
            take = min(threads, cell.pending)
            cell.pending -= take
            threads -= take
            self._settle(cell)

    def _belongs(self, agent: Agent, step: Step, cell: Cell) -> None:
        """Check that what arrives now can't arrive before the phase before has completed."""
        if agent.clock[self.init_stream + cell.cta] < 1:
            self._fault(Kind.UNINITIALISED, agent, step, None, cell.barrier)
        if agent.clock[cell.stream] >= cell.completed:
            return
        for entry in cell.before:
            if entry.stream == agent.index or (entry.agent == agent.index and entry.stream == agent.mma_stream):
                continue
            if agent.clock[entry.stream] <= entry.index:
                self._fault(Kind.MIXED_ARRIVALS, agent, step, entry.at, f"{cell.barrier}[{cell.slot}]")
                return

    def _publish(self, agent: Agent, cell: Cell) -> None:
        if cell.joined == (agent.index, agent.version):
            return
        agent.clock[agent.index] += 1
        join(cell.clock, agent.clock)
        agent.clock[agent.index] -= 1
        cell.joined = (agent.index, agent.version)

    def _settle(self, cell: Cell) -> None:
        """Complete the phase if nothing is pending."""
        if cell.pending or cell.bytes:
            return
        phase = cell.completed
        cell.clock[cell.stream] = phase + 1
        cell.completed = phase + 1
        cell.done.append(cell.clock.copy())
        cell.last_tile.append(max((e.at.tile for e in cell.entries), default=0))
        cell.before, cell.entries = cell.entries, []
        cell.pending = cell.count
        cell.joined = (-1, -1)
        late = [w for w in cell.waits if w[0] == phase]
        for _, wait in late:
            if cell.clock[wait.stream] <= wait.index:
                last = cell.before[-1].at if cell.before else wait.at
                self._add(Fault(Kind.LAPPED, wait.at, last, f"{cell.barrier}[{cell.slot}]"))
        if late:
            cell.waits = [w for w in cell.waits if w[0] > phase]
        if cell.sleepers:
            self.ready.extend(reversed(cell.sleepers))
            cell.sleepers = []

    # -- memory ------------------------------------------------------------------------------------------------

    def _place(self, buffer: str, cta: int, slot: int, part: int = 0) -> Place:
        key = (buffer, cta, slot, part)
        place = self.places.get(key)
        if place is None:
            place = self.places[key] = Place(f"{buffer}[{slot}]")
        return place

    def _load(self, agent: Agent, step: Step, load: Load) -> None:
        plan = self.plans[load.barrier]
        first = agent.slot(load.slot)
        part = self._part(load, agent.cta)
        parts = range(part, part + 1) if load.parts > 1 else range(self._parts(load.operand))
        barrier_slot = agent.slot(load.barrier_slot) % plan.slots
        for written in load.writes.of(agent.cta):
            for signalled in load.signals.of(written):
                cell = self.cells[load.barrier, signalled, barrier_slot]
                self._belongs(agent, step, cell)
                entry = Entry(cell.stream, cell.completed, agent.index, self._at(agent, step))
                for i in range(load.count):
                    for p in parts:
                        place = self._place(load.operand.value, written, first + i, p)
                        self._write(agent, step, place, entry, agent.clock)
                        place.tag = (agent.tile, step.k)
                cell.entries.append(entry)
                self._publish(agent, cell)
                cell.loads.append((agent.tile, cell.completed))
                cell.bytes -= load.bytes
                self._settle(cell)

    def _parts(self, operand: Operand) -> int:
        return max((s.parts for p in self.protocol.programs for s in p.walk() if isinstance(s, Load) and s.operand is operand), default=1)

    def _part(self, load: Load, cta: int) -> int:
        return sorted(load.writes.of(cta)).index(cta) if load.parts > 1 else 0

    def _mma(self, agent: Agent, step: Step, mma: Mma) -> None:
        entry = Entry(agent.mma_stream, agent.mmas, agent.index, self._at(agent, step))
        meant = (agent.tile, step.k)
        a, b, acc = agent.slot(mma.a), agent.slot(mma.b), agent.slot(mma.acc)
        for cta in self.pair_of[agent.cta] if self.tmem else (agent.cta,):
            for buffer, slot, operand in (("A", a, Operand.A), ("B", b, Operand.B)):
                for part in range(self._parts(operand)):
                    place = self._place(buffer, cta, slot, part)
                    self._read(agent, step, place, entry, agent.clock, meant)
            place = self._place("acc", cta, acc)
            known = agent.tmem_clock if self.tmem else agent.clock
            writer = place.writer
            if writer is None or writer.stream != agent.mma_stream or place.readers:
                self._write(agent, step, place, entry, known)
            else:
                place.writer = entry
            if step.k == 0:
                place.tag = (agent.tile, 1)
            elif place.tag == (agent.tile, step.k):
                place.tag = (agent.tile, step.k + 1)
            else:
                self._fault(Kind.WRONG_DATA, agent, step, writer.at if writer else None, place.name, "sum")
                place.tag = (agent.tile, step.k + 1)
        agent.mmas += 1

    def _acc_read(self, agent: Agent, step: Step, read: AccRead) -> None:
        entry = Entry(agent.read_stream, agent.reads, agent.index, self._at(agent, step))
        place = self._place("acc", agent.cta, agent.slot(read.acc))
        self._read(agent, step, place, entry, agent.tmem_clock, (agent.tile, self.k_tiles))
        agent.reads += 1
        agent.held = (agent.tile, step.chunk)
        agent.last_read_order = agent.order

    def _store_write(self, agent: Agent, step: Step, write: StoreWrite) -> None:
        if self.tmem:
            if agent.held != (agent.tile, step.chunk):
                self._fault(Kind.WRONG_DATA, agent, step, None, "registers", "chunk")
            elif agent.reads_done < agent.reads:
                self._fault(Kind.NOT_VISIBLE, agent, step, None, "registers", "read not waited for")
        else:
            acc = self._place("acc", agent.cta, self._acc_registers(agent))
            entry = Entry(agent.index, agent.clock[agent.index], agent.index, self._at(agent, step))
            self._read(agent, step, acc, entry, agent.clock, (agent.tile, self.k_tiles), own_async=True)
        place = self._place("D", agent.cta, agent.slot(write.buffer))
        self._write(agent, step, place, Entry(agent.index, agent.clock[agent.index], agent.index, self._at(agent, step)), agent.clock)
        if place.readers and agent.last_store_wait > agent.last_sync:
            self._fault(Kind.NOT_VISIBLE, agent, step, place.readers[-1].at, place.name, "buffer freed for one thread only")
        place.readers = []
        place.written_order = agent.order
        place.tag = (agent.tile, step.chunk)

    def _acc_registers(self, agent: Agent) -> int:
        for s in agent.program.walk():
            if isinstance(s, Mma):
                return agent.slot(s.acc)
        return agent.instance

    def _store_issue(self, agent: Agent, step: Step, issue: StoreIssue) -> None:
        place = self._place("D", agent.cta, agent.slot(issue.buffer))
        entry = Entry(agent.store_stream, agent.groups, agent.index, self._at(agent, step))
        if place.tag != (agent.tile, step.chunk):
            self._fault(Kind.WRONG_DATA, agent, step, place.writer.at if place.writer else None, place.name, "chunk")
        elif not place.written_order < agent.last_fence < agent.last_sync:
            self._fault(Kind.NOT_VISIBLE, agent, step, place.writer.at if place.writer else None, place.name, "store fence")
        place.readers.append(entry)
        agent.open_group = True
        agent.stored += 1

    def _read(
        self, agent: Agent, step: Step, place: Place, entry: Entry, known: list[int], meant: tuple[int, int],
        own_async: bool = False,
    ) -> None:  # fmt: skip
        writer = place.writer
        if writer is None:
            self._fault(Kind.READ_EARLY, agent, step, None, place.name)
        elif (writer.stream != agent.index or own_async) and known[writer.stream] <= writer.index:
            invisible = known is not agent.clock and agent.clock[writer.stream] > writer.index
            self._fault(Kind.NOT_VISIBLE if invisible else Kind.READ_EARLY, agent, step, writer.at, place.name, "tcgen05 fence")
        elif place.tag != meant:
            self._fault(Kind.WRONG_DATA, agent, step, writer.at, place.name, f"{place.tag} for {meant}")
        place.readers = [r for r in place.readers if r.agent != agent.index]
        place.readers.append(entry)

    def _write(self, agent: Agent, step: Step, place: Place, entry: Entry, known: list[int]) -> None:
        for reader in place.readers:
            if reader.stream != agent.index and known[reader.stream] <= reader.index:
                invisible = known is not agent.clock and agent.clock[reader.stream] > reader.index
                kind = Kind.NOT_VISIBLE if invisible else Kind.OVERWRITE
                self._fault(kind, agent, step, reader.at, place.name, "tcgen05 fence")
                break
        else:
            writer = place.writer
            if writer and writer.stream not in (agent.index, agent.mma_stream) and known[writer.stream] <= writer.index:
                self._fault(Kind.WRITE_WRITE, agent, step, writer.at, place.name)
        place.writer = entry
        place.readers = []

    # -- ends --------------------------------------------------------------------------------------------------

    def _end_tile(self, agent: Agent) -> None:
        if agent.stored != self.chunks and any(isinstance(i, Step) and isinstance(i.action, StoreIssue) for i in agent.tile_items):
            first = next(i for i in agent.tile_items if isinstance(i, Step))
            self._fault(Kind.WRONG_DATA, agent, first, None, "D", "chunks missing")
        agent.stored = 0

    def _check_end(self) -> None:
        known = [max(column) for column in zip(*(a.clock for a in self.agents), strict=True)]
        for cell in self.cells.values():
            for tile, phase in cell.loads:
                if known[cell.stream] <= phase:
                    entry = next((e for e in cell.entries if e.at.tile == tile), None)
                    self._add(Fault(Kind.EARLY_EXIT, entry.at if entry else self._some(cell), None, f"{cell.barrier}[{cell.slot}]", "load"))
                    break
        for agent in self.agents:
            if self.tmem and known[agent.mma_stream] < agent.mmas:
                step = next(i for i in agent.tile_items if isinstance(i, Step) and isinstance(i.action, Mma))
                self._fault(Kind.EARLY_EXIT, agent, step, None, "acc", "mma")
            if agent.clock[agent.store_stream] < agent.groups or agent.open_group:
                step = next(i for i in agent.tile_items if isinstance(i, Step) and isinstance(i.action, StoreIssue))
                self._fault(Kind.EARLY_EXIT, agent, step, None, "D", "store")
            if agent.reads_done < agent.reads:
                step = next(i for i in agent.tile_items if isinstance(i, Step) and isinstance(i.action, AccRead))
                self._fault(Kind.EARLY_EXIT, agent, step, None, "acc", "read")
        if self.protocol.end_sync != "cluster":
            self._check_peers()

    def _check_peers(self) -> None:
        """Without a cluster sync at the end, each CTA must itself know of all that peers do to it."""
        for cell in self.cells.values():
            own = [a for a in self.agents if a.cta == cell.cta]
            for entry in (*cell.before, *cell.entries):
                if self.agents[entry.agent].cta == cell.cta:
                    continue
                if not any(a.clock[entry.stream] > entry.index for a in own):
                    self._add(Fault(Kind.EARLY_EXIT, entry.at, None, f"{cell.barrier}[{cell.slot}]", "peer"))
                    break

    def _some(self, cell: Cell) -> At:
        return (cell.before or cell.entries)[0].at

    def _deadlock(self, stuck: list[Agent]) -> None:
        blocked = {a.index: self._blocked(a) for a in stuck}
        first = next(iter(blocked.values()))
        self._add(Fault(Kind.DEADLOCK, first.at, None, first.barrier, "", tuple(blocked.values())))

    def _blocked(self, agent: Agent) -> Blocked:
        items = agent.tile_items if agent.tile < agent.tiles else agent.tail
        step = items[agent.position]
        assert isinstance(step, Step) and isinstance(step.action, Wait)
        wait = step.action
        cell = self._cell(wait.barrier, agent.cta, agent, wait.slot)
        needed = agent.wraps(wait.slot) + 1 - wait.phase
        sources = {g.value for g in self.plans[wait.barrier].barrier.sources}
        lacking = tuple(self._where(a) for a in self.agents if a.program.role.name in sources and not a.finished and a is not agent)
        return Blocked(
            self._at(agent, step), cell.barrier, cell.slot, needed, cell.completed, cell.pending, cell.bytes, lacking
        )

    def _where(self, agent: Agent) -> At:
        items = agent.tile_items if agent.tile < agent.tiles else agent.tail
        step = next(i for i in items[agent.position :] if isinstance(i, Step))
        return self._at(agent, step)

    # -- faults ------------------------------------------------------------------------------------------------

    def _entry(self, agent: Agent, step: Step) -> Entry:
        return Entry(agent.index, agent.clock[agent.index], agent.index, self._at(agent, step))

    def _at(self, agent: Agent, step: Step) -> At:
        action = step.action
        word = WORDS.get(type(action), "")
        slot = getattr(action, "slot", None)
        barrier = getattr(action, "barrier", "")
        if isinstance(action, Wait | Arrive | Commit | Expect):
            word = f"{word} {barrier}[{agent.slot(action.slot)}]"
        elif isinstance(action, Load) and slot is not None:
            word = f"{word} {action.operand.value}"
        return At(agent.program.role.name, agent.instance, agent.cta, agent.tile, step.k, action.span, word)

    def _fault(self, kind: Kind, agent: Agent, step: Step, other: At | None, place: str, detail: str = "") -> None:
        self._add(Fault(kind, self._at(agent, step), other, place, detail))

    def _add(self, fault: Fault) -> None:
        key = (fault.kind, fault.at.span, fault.other.span if fault.other else None, fault.place.split("[")[0])
        self.faults.setdefault(key, fault)
