"""Execute the Protocol once, for given trip counts, and say what goes wrong in *any* execution.

Agents are deterministic, and a wait that passes in one order of events passes in all (unless a phase can be lapped,
which is checked on the way), so one maximal execution with happens-before stands for every interleaving:
see docs/proof.md. Given a Protocol and counts, returns faults; puts nothing into words.
"""

from __future__ import annotations

from functools import reduce

from gemmspec.proof.agents import Agent, Run, Step, agents_of, give_streams
from gemmspec.proof.cells import Cell, Entry
from gemmspec.proof.clocks import Clock, joiner, raised, seen
from gemmspec.proof.depths import Trips
from gemmspec.proof.fault import Blocked, Fault, Kind
from gemmspec.proof.faults import Faults, Key, at
from gemmspec.proof.memory import Memory
from gemmspec.proof.order import ORDERS
from gemmspec.protocol.derive import expects_in
from gemmspec.protocol.program import (
    AccRead,
    Action,
    Add,
    Arrive,
    Commit,
    Expect,
    Load,
    Mma,
    Protocol,
    Send,
    StoreIssue,
    StoreWrite,
    Wait,
)
from gemmspec.protocol.targets import Targets
from gemmspec.targets.target import MBARRIER_TX_LIMIT


def _unset(a: Clock, b: Clock) -> Clock:
    raise AssertionError("a cell joins clocks only when the number of streams is known")


class Machine:
    """One execution."""

    def __init__(self, protocol: Protocol, trips: Trips) -> None:
        self.protocol = protocol
        self.agents = agents_of(protocol, trips)
        self.faults = Faults()
        self.stores = trips.stores
        self.memory = Memory(protocol, trips, self.faults)
        self.plans = {b.name: b for b in protocol.barriers}
        self.ctas = ctas = protocol.spec.cluster.size
        streams = give_streams(self.agents)
        self.cells: dict[str, list[list[Cell]]] = {}
        for plan in protocol.barriers:
            self.cells[plan.name] = [
                [
                    Cell(plan.name, slot, cta, plan.arrivals, streams + cta * plan.slots + slot, plan.arrivals, _unset)
                    for slot in range(plan.slots)
                ]
                for cta in range(ctas)
            ]
            streams += ctas * plan.slots
        self.join = joiner(streams)
        for agent in self.agents:
            agent.unit = raised(0, agent.index, 1)
        waits = {p.role.name: {s.barrier for s in p.walk() if isinstance(s, Wait)} for p in protocol.programs}
        waited = {(a.cta, barrier) for a in self.agents for barrier in waits[a.program.role.name]}
        for cell in self.all_cells():
            cell.join = self.join
            cell.observed = (cell.cta, cell.barrier) in waited
        self.initialised = protocol.start_sync == "cluster"
        self.ready: list[Agent] = []
        self._bind()

    def all_cells(self) -> list[Cell]:
        """Return every mbarrier of the cluster."""
        return [cell for ctas in self.cells.values() for slots in ctas for cell in slots]

    def begun(self) -> dict[tuple[str, int, int], int]:
        """Return the arrivals on each mbarrier that somebody waits for and that had some, but not for two phases."""
        cells = ((c, c.arrived) for c in self.all_cells() if c.observed)
        return {(c.barrier, c.cta, c.slot): n for c, n in cells if 0 < n < 2 * c.count}

    # -- running -----------------------------------------------------------------------------------------------

    def run(self) -> dict[Key, Fault]:
        """Execute until every agent has ended or none can go on; return the faults by kind and places in the spec."""
        self.ready = self.agents[::-1]
        while self.ready:
            self._go(self.ready.pop())
        stuck = [a for a in self.agents if not a.finished]
        if stuck:
            self._deadlock(stuck)
        else:
            self._check_end()
        return self.faults.found

    def _go(self, agent: Agent) -> None:
        """Let an agent act until it blocks or ends."""
        counts = agent.counts
        while True:
            steps = agent.now
            position, end = agent.position, len(steps)
            while position < end:
                step = steps[position]
                run = step.run
                if run is None:
                    for cursor in step.advances:
                        counts[cursor] += 1
                elif run(agent, step, step.action) is False:
                    agent.position = position
                    return
                position += 1
            agent.position = 0
            if agent.tile >= agent.tiles:
                agent.finished = True
                return
            agent.tile += 1

    def _bind(self) -> None:
        """Give each step what it does; the agents of a role share their steps."""
        runs: dict[type[Action], Run] = {
            **ORDERS,
            Wait: self._wait,
            Load: self._load,
            Expect: self._expect,
            Arrive: self._arrive,
            Commit: self._commit,
            Mma: self.memory.mma,
            AccRead: self.memory.acc_read,
            Send: self._send,
            Add: self.memory.add,
            StoreWrite: self.memory.store_write,
            StoreIssue: self.memory.store_issue,
        }
        for steps in {id(s): s for agent in self.agents for s in (agent.first, agent.steps, agent.tail)}.values():
            for step in steps:
                if step.action is not None:
                    step.run = runs[type(step.action)]

    # -- barriers ----------------------------------------------------------------------------------------------

    def _cell(self, barrier: str, cta: int, slot: int) -> Cell:
        slots = self.cells[barrier][cta]
        return slots[slot % len(slots)]

    def _inside(
        self, agent: Agent, step: Step, barrier: str, targets: Targets, cta: int | None = None
    ) -> tuple[int, ...]:
        """Return the ranks that an agent (or CTA `cta`) reaches, if the cluster has them all."""
        reached = targets.of(agent.cta if cta is None else cta)
        if not reached or reached[-1] < self.ctas:
            return reached
        self.faults.add(Kind.UNINITIALISED, agent, step, None, barrier, "outside the cluster")
        return tuple(r for r in reached if r < self.ctas)

    def _wait(self, agent: Agent, step: Step, wait: Wait) -> bool:
        wraps, slot = agent.turn(wait.slot)
        cell = self._cell(wait.barrier, agent.cta, slot)
        needed = wraps + 1 - wait.phase
        if cell.completed < needed:
            cell.sleepers.append(agent)
            return False
        if needed > 1 and not cell.known_over(needed - 1, agent.clock):
            self.faults.add(Kind.AHEAD, agent, step, None, cell.place, "")
        if needed > 0:
            agent.clock = self.join(agent.clock, cell.done[needed - 1])
            agent.version += 1
            if cell.last_tile[needed - 1] > agent.tile:
                self.faults.add(Kind.DEADLOCK, agent, step, None, cell.place, "later tile")
        if self.plans[wait.barrier].exchange:
            agent.wide_clock = agent.clock
        if cell.completed > needed:
            self.faults.add(Kind.LAPPED, agent, step, cell.before[-1] if cell.before else None, cell.place, "")
        else:
            alone = agent.wait_stream == agent.index
            turn = agent.epoch if alone else agent.waits
            cell.waits.append((needed, Entry(agent.wait_stream, turn, agent, step, agent.tile)))
        agent.waits += 1
        return True

    def _expect(self, agent: Agent, step: Step, expect: Expect) -> None:
        if expects_in(self.plans[expect.barrier], agent.cta):
            cell = self._cell(expect.barrier, agent.cta, agent.slot(expect.slot))
            cell.bytes += expect.bytes
            if cell.bytes > MBARRIER_TX_LIMIT:
                self.faults.add(Kind.MIXED_ARRIVALS, agent, step, None, cell.place, "too many bytes")
            self._arrive_at(cell, 1, Entry(agent.index, agent.epoch, agent, step, agent.tile), agent.clock)
            self._release(agent)

    def _arrive(self, agent: Agent, step: Step, arrive: Arrive) -> None:
        if arrive.threads == 1 < agent.program.threads and agent.last_read > agent.last_sync:
            self.faults.add(Kind.NOT_VISIBLE, agent, step, None, arrive.barrier, "one thread for all")
        entry = Entry(agent.index, agent.epoch, agent, step, agent.tile)
        slot, clock = agent.slot(arrive.slot), agent.clock
        if arrive.threads > 1:
            # Each thread arrives behind its own waits. (One thread that arrives for all knows of the others' waits
            # only what a sync or a multiply of the warpgroup told it.)
            clock = agent.with_moves(raised(clock, agent.wait_stream, agent.waits))
        for cta in self._inside(agent, step, arrive.barrier, arrive.targets):
            self._arrive_at(self._cell(arrive.barrier, cta, slot), arrive.threads, entry, clock)
        self._release(agent)

    def _commit(self, agent: Agent, step: Step, commit: Commit) -> None:
        # PTX ISA, tcgen05.commit: tracks every earlier multiply of this thread, and implies before_thread_sync.
        clock, entry = agent.clock, Entry(agent.index, agent.epoch, agent, step, agent.tile)
        if agent.mma_stream >= 0:
            entry = Entry(agent.commit_stream, agent.commits, agent, step, agent.tile)
            agent.commits += 1
            clock = raised(raised(clock, agent.mma_stream, agent.mmas), agent.commit_stream, agent.commits)
        agent.version += 1
        slot = agent.slot(commit.slot)
        for cta in self._inside(agent, step, commit.barrier, commit.targets):
            self._arrive_at(self._cell(commit.barrier, cta, slot), 1, entry, clock)
        self._release(agent)

    def _send(self, agent: Agent, step: Step, send: Send) -> None:
        self.memory.send(agent, step, send, self._inside(agent, step, "R", send.writes))

    def _load(self, agent: Agent, step: Step, load: Load) -> None:
        slot = agent.slot(load.barrier_slot)
        for written in self._inside(agent, step, load.barrier, load.writes):
            for signalled in self._inside(agent, step, load.barrier, load.signals, written):
                cell = self._cell(load.barrier, signalled, slot)
                self._belongs(cell, agent, step)
                cell.landed = entry = self.memory.load(agent, step, load, written, cell)
                cell.entries.append(entry)
                cell.publish(agent, agent.clock)
                cell.bytes -= load.bytes
                if not (cell.bytes or cell.pending):
                    self._complete(cell)

    def _arrive_at(self, cell: Cell, threads: int, entry: Entry, clock: Clock) -> None:
        agent = entry.agent
        self._belongs(cell, agent, entry.step)
        if threads > cell.pending:
            other = cell.entries[0] if cell.entries else cell.before[0] if cell.before else None
            self.faults.add(Kind.MIXED_ARRIVALS, agent, entry.step, other, cell.place, "too many")
        while threads > 0:
            cell.entries.append(entry)
            cell.publish(agent, clock)
            take = min(threads, cell.pending)
            if not take:
                break  # arrivals are complete but bytes are not: PTX leaves the count undefined
            cell.pending -= take
            threads -= take
            if not (cell.pending or cell.bytes):
                self._complete(cell)

    def _belongs(self, cell: Cell, agent: Agent, step: Step) -> None:
        """Check that what arrives now can't arrive before the previous phase has completed."""
        if not self.initialised and cell.cta != agent.cta:
            self.faults.add(Kind.UNINITIALISED, agent, step, None, cell.place, "")
        clock = agent.clock
        if not cell.observed or seen(clock, cell.stream) >= cell.completed:
            return
        for entry in cell.before:
            # Commits of one thread arrive in the order of issue; an arrival of the thread itself may overtake them.
            own = entry.agent is agent and (entry.stream == agent.index or isinstance(step.action, Commit))
            if not own and seen(clock, entry.stream) <= entry.turn:
                self.faults.add(Kind.MIXED_ARRIVALS, agent, step, entry, cell.place, "")
                return

    def _complete(self, cell: Cell) -> None:
        """Complete the phase, and check that its waiters have looked at the one before."""
        late = cell.complete()
        clock = cell.done[-1]
        for wait in late:
            if seen(clock, wait.stream) <= wait.turn:
                self.faults.between(Kind.LAPPED, wait, cell.before[-1], cell.place)
        if cell.sleepers:
            self.ready += cell.sleepers[::-1]
            cell.sleepers = []

    def _release(self, agent: Agent) -> None:
        agent.epoch += 1
        agent.clock += agent.unit
        agent.version += 1

    # -- ends --------------------------------------------------------------------------------------------------

    def _check_end(self) -> None:
        """Check that nothing is in flight when the CTAs exit, behind the sync at the end."""
        known = reduce(self.join, (a.clock for a in self.agents))
        for cell in self.all_cells():
            load = cell.landed
            if load is not None and seen(known, cell.stream) <= load.turn:
                self.faults.put(Fault(Kind.EARLY_EXIT, at(load.agent, load.step, load.tile), None, cell.place, "load"))
        for agent in self.agents:
            flights = (
                (agent.mma_stream >= 0 and seen(known, agent.mma_stream) < agent.mmas, Mma, "acc", "mma"),
                (agent.commits > 0 and seen(known, agent.commit_stream) < agent.commits, Commit, "barrier", "commit"),
                (agent.groups_done < agent.groups or agent.open_group, StoreIssue, "D", "store"),
                (agent.reads_done < agent.reads, AccRead, "acc", "read"),
            )
            for in_flight, kind, place, detail in flights:
                if in_flight:
                    step = [s for s in (*agent.first, *agent.steps) if isinstance(s.action, kind)][-1]
                    if isinstance(step.action, Commit):
                        place = step.action.barrier
                    self.faults.put(Fault(Kind.EARLY_EXIT, at(agent, step, agent.tile - 1), None, place, detail))
        if self.stores:
            self.memory.check_stored(self.agents)
        if self.protocol.end_sync != "cluster":
            self._check_peers()

    def _check_peers(self) -> None:
        """Without a cluster sync at the end, each CTA must itself know of all that its peers do to it."""
        for cell in self.all_cells():
            own = [a for a in self.agents if a.cta == cell.cta]
            for entry in (*cell.before, *cell.entries):
                if entry.agent.cta != cell.cta and not any(seen(a.clock, entry.stream) > entry.turn for a in own):
                    where = at(entry.agent, entry.step, entry.tile)
                    self.faults.put(Fault(Kind.EARLY_EXIT, where, None, cell.place, "peer"))
                    break

    def _deadlock(self, stuck: list[Agent]) -> None:
        cycle = tuple(self._blocked(a) for a in stuck)
        self.faults.put(Fault(Kind.DEADLOCK, cycle[0].at, None, cycle[0].barrier, "", cycle))

    def _blocked(self, agent: Agent) -> Blocked:
        wait = agent.current.action
        assert isinstance(wait, Wait)
        wraps, slot = agent.turn(wait.slot)
        cell = self._cell(wait.barrier, agent.cta, slot)
        needed = wraps + 1 - wait.phase
        plan = self.plans[wait.barrier]
        sources = {g.value for g in plan.barrier.sources}
        lacking = tuple(
            at(a, a.current, a.tile)
            for a in self.agents
            if a.program.role.name in sources and agent.cta in plan.targets.of(a.cta)
            if not a.finished and a is not agent
        )
        here = at(agent, agent.current, agent.tile)
        return Blocked(here, cell.barrier, cell.slot, needed, cell.completed, cell.pending, cell.bytes, lacking)
