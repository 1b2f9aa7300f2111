"""The hardware's state and its steps: mbarriers, memory cells, asynchronous engines.

A state is one flat list of numbers, so that copying, hashing and comparing are cheap. PTX ISA, mbarrier: a barrier
is (phases completed, pending arrivals, pending bytes); the phase completes when both pendings are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .code import K_BITS, PLACE_BITS, SUM_BITS, Code, Do, Op

State = list[int]
Report = Callable[[str, str], None]
"""What is told of a violation: its kind and a text."""


class Machine:
    """Steps over states. A process is a number: agents, MMA engines, queues of commits, exits, inits, flights."""

    def __init__(self, code: Code) -> None:
        self.code = code
        na, nq, nc = len(code.agents), len(code.queues), code.ctas
        self.na = na
        self.engine, self.queue, self.exit = na, 2 * na, 2 * na + nq
        self.init = self.exit + nc
        self.flight = self.init + nc
        self.PC, self.REST, self.DONE = 0, na, 2 * na
        self.FIRED = 3 * na
        self.BAR = self.FIRED + nq
        self.CELL = self.BAR + 3 * len(code.barriers)
        self.SYNC = self.CELL + 4 * len(code.cells)
        self.OUT = self.SYNC + code.syncs
        self.IN = self.OUT + nc
        self.AIR = self.IN + nc
        self.of_cta = [[n for n, a in enumerate(code.agents) if a.cta == c] for c in range(nc)]
        self.engines = [n for n, a in enumerate(code.agents) if a.mmas]
        self.length = [len(a.ops) for a in code.agents]

    def start(self) -> State:
        """Return the state before the first step."""
        s = [0] * (self.AIR + 1)
        for b, (_, _, _, count) in enumerate(self.code.barriers):
            s[self.BAR + 3 * b + 1] = count
        if not self.code.init:
            for c in range(self.code.ctas):
                s[self.IN + c] = 1
        return s

    def runnable(self, s: State, agent: int) -> bool:
        """Return whether an agent can take its next step."""
        pc = s[agent]
        if pc == self.length[agent]:
            return False
        if pc == 0 and self.code.init and not all(s[self.IN + c] for c in self.code.ready[agent]):
            return False
        op = self.code.agents[agent].ops[pc]
        if op.code == Do.WAIT:
            # PTX ISA, mbarrier.try_wait.parity: true once the phase of that parity is complete, that is, while
            # the phase at hand has the other parity.
            return s[self.BAR + 3 * op.x] & 1 != op.y
        if op.code == Do.MASK:
            return not s[self.AIR] & op.x
        if op.code == Do.DONE:
            return s[self.DONE + agent] >= op.x
        if op.code == Do.SYNC_WAIT:
            return s[self.SYNC + op.x] >= op.y
        return True

    def waited(self, s: State, agent: int) -> int | None:
        """Return how many phases are complete where an agent is about to pass a wait."""
        op = self.code.agents[agent].ops[s[agent]]
        return s[self.BAR + 3 * op.x] if op.code == Do.WAIT else None

    def queue_ready(self, s: State, q: int) -> bool:
        agent, _, arrivals = self.code.queues[q]
        n = s[self.FIRED + q]
        if n == len(arrivals) or s[agent] <= arrivals[n].op or s[self.DONE + agent] < arrivals[n].done:
            return False
        return all(s[self.FIRED + other] >= least for other, least in arrivals[n].after)

    def others(self, s: State) -> Iterator[int]:
        """Yield every process that is no agent and can step."""
        for a in self.engines:
            if s[self.DONE + a] < self.code.agents[a].issued[s[a]]:
                yield self.engine + a
        for q in range(len(self.code.queues)):
            if self.queue_ready(s, q):
                yield self.queue + q
        air = s[self.AIR]
        while air:
            low = air & -air
            yield self.flight + low.bit_length() - 1
            air ^= low
        for c in range(self.code.ctas):
            if not s[self.OUT + c] and all(s[a] == self.length[a] for a in self.of_cta[c]):
                yield self.exit + c
            if not s[self.IN + c]:
                yield self.init + c

    def enabled(self, s: State) -> list[int]:
        """Return every process that can step."""
        return [a for a in range(self.na) if self.runnable(s, a)] + list(self.others(s))

    def ended(self, s: State) -> bool:
        return all(s[a] == self.length[a] for a in range(self.na))

    def text(self, s: State, process: int) -> str:
        """Return what a process is about to do."""
        if process < self.engine:
            pc = s[process]
            agent = self.code.agents[process]
            return agent.ops[pc].text if pc < self.length[process] else f"{agent.name}: ended"
        if process < self.queue:
            a = process - self.engine
            return "end of " + self.code.agents[a].mmas[s[self.DONE + a]].text
        if process < self.exit:
            q = process - self.queue
            return self.code.queues[q][2][s[self.FIRED + q]].text
        if process < self.init:
            return f"CTA {process - self.exit} exits"
        if process < self.flight:
            return f"CTA {process - self.init} initialises its barriers"
        return self.code.flights[process - self.flight].text

    def step(self, s: State, process: int, report: Report) -> bool:
        """Let an enabled process take one step, in place. Return whether what follows still has a meaning."""
        if process < self.engine:
            return self._agent(s, process, report)
        if process < self.queue:
            a = process - self.engine
            op = self.code.agents[a].mmas[s[self.DONE + a]]
            s[self.DONE + a] += 1
            for cell, _ in op.x:
                self._touch(s, self.code.cells[cell][1], report)
                s[self.CELL + 4 * cell + 3] -= 1
            for cell in op.y:
                self._touch(s, self.code.cells[cell][1], report)
                s[self.CELL + 4 * cell + 2] -= 1
            return True
        if process < self.exit:
            q = process - self.queue
            pending = self.code.queues[q][2][s[self.FIRED + q]]
            s[self.FIRED + q] += 1
            return self.arrive(s, pending.barrier, 1, report)
        if process < self.init:
            s[self.OUT + process - self.exit] = 1
            return True
        if process < self.flight:
            s[self.IN + process - self.init] = 1
            return True
        return self._land(s, process - self.flight, report)

    def _touch(self, s: State, cta: int, report: Report) -> None:
        if s[self.OUT + cta]:
            report("exit", f"CTA {cta} has exited")

    def _use(self, s: State, barrier: int, report: Report) -> None:
        cta = self.code.barriers[barrier][1]
        self._touch(s, cta, report)
        if not s[self.IN + cta]:
            report("uninitialised", f"the barriers of CTA {cta} are not initialised")

    def arrive(self, s: State, barrier: int, threads: int, report: Report) -> bool:
        """Count arrivals that fit the phase at hand."""
        self._use(s, barrier, report)
        i = self.BAR + 3 * barrier
        if s[i + 1] < threads:
            report("over-arrival", f"{self.code.barriers[barrier][:3]}: {s[i + 1]} pending, {s[i + 2]} bytes pending")
            return False
        s[i + 1] -= threads
        self._complete(s, barrier)
        return True

    def _complete(self, s: State, barrier: int) -> None:
        i = self.BAR + 3 * barrier
        if s[i + 1] == 0 and s[i + 2] == 0:
            s[i] += 1
            s[i + 1] = self.code.barriers[barrier][3]

    def _write(self, s: State, cell: int, writer: int, report: Report) -> None:
        """Begin a write."""
        i = self.CELL + 4 * cell
        self._touch(s, self.code.cells[cell][1], report)
        if s[i + 3]:
            report("race", f"{self.code.cells[cell][0]} is written while it is being read")
        if s[i + 2] and s[i + 1] != writer:
            report("race", f"{self.code.cells[cell][0]} is written while it is being written")

    def _read(self, s: State, cell: int, report: Report) -> int | None:
        """Begin a read, or read at once. Return the contents' stamp, None while they are being written."""
        i = self.CELL + 4 * cell
        self._touch(s, self.code.cells[cell][1], report)
        if not s[i + 2]:
            return s[i]
        report("race", f"{self.code.cells[cell][0]} is read while it is being written")
        return None

    def _agent(self, s: State, agent: int, report: Report) -> bool:
        op: Op = self.code.agents[agent].ops[s[agent]]
        match op.code:
            case Do.WAIT:
                self._use(s, op.x, report)
            case Do.ARRIVE:
                i = self.BAR + 3 * op.x
                rest = s[self.REST + agent] or op.y
                # The threads arrive one by one, so those that overflow a phase count towards the next.
                now = min(rest, s[i + 1]) or rest
                s[self.REST + agent] = rest - now
                if not self.arrive(s, op.x, now, report):
                    return False
                if rest > now:
                    # What is left over adds up from phase to phase, until one completes without its last arrivals.
                    report(
                        "split", f"{self.code.barriers[op.x][:3]}: a phase completes amid one role instance's arrivals"
                    )
                    return True
            case Do.EXPECT:
                s[self.BAR + 3 * op.x + 2] += op.y
                if not self.arrive(s, op.x, 1, report):
                    return False
            case Do.LOAD:
                for flight in op.x:
                    for cell, _ in self.code.flights[flight].lands:
                        self._write(s, cell, -1 - flight, report)
                        s[self.CELL + 4 * cell + 1] = -1 - flight
                        s[self.CELL + 4 * cell + 2] += 1
                    s[self.AIR] |= 1 << flight
            case Do.MMA:
                self._mma(s, agent, op, report)
            case Do.READ:
                self._sum(s, op.x, op.y, report)
                s[self.CELL + 4 * op.x + 3] += 1
                s[self.AIR] |= 1 << op.z
            case Do.WRITE:
                loading, registers, _ = op.z
                if s[self.AIR] & loading:
                    report("race", "registers are used before tcgen05.wait::ld")
                for cell, expected in registers:
                    self._sum(s, cell, expected, report)
                self._write(s, op.x, agent + 1, report)
                s[self.CELL + 4 * op.x] = op.y
            case Do.SEND:
                for cell, expected in op.y:
                    self._sum(s, cell, expected, report)
                for cell, stamp in op.x:
                    self._write(s, cell, agent + 1, report)
                    s[self.CELL + 4 * cell] = stamp
            case Do.ADD:
                for cell, expected in op.y:
                    self._sum(s, cell, expected, report)
                for cell, stamp in op.x:
                    if self._read(s, cell, report) not in (None, stamp):
                        report("stale", f"{self.code.cells[cell][0]} does not hold its peer's part of the tile")
            case Do.ISSUE:
                if self._read(s, op.x, report) not in (None, op.y):
                    report("stale", f"{self.code.cells[op.x][0]} is stored with another chunk's values")
                s[self.CELL + 4 * op.x + 3] += 1
                s[self.AIR] |= 1 << op.z
            case Do.SYNC_ARRIVE:
                s[self.SYNC + op.x] += 1
            case Do.BAD:
                report(op.x, op.text)
            case _:
                pass
        s[agent] += 1
        return True

    def _mma(self, s: State, agent: int, op: Op, report: Report) -> None:
        tile, first = op.z
        found: set[int] = set()
        for cell, place in op.x:
            stamp = self._read(s, cell, report)
            s[self.CELL + 4 * cell + 3] += 1
            if stamp is not None:
                found.add((stamp - 1) >> PLACE_BITS if (stamp - 1) & (1 << PLACE_BITS) - 1 == place else -1)
        k = max(found, default=-1)
        if found and (len(found) > 1 or k < 0 or k >> K_BITS != tile):
            report("stale", f"{op.text} does not read one k tile of its tile")
        for cell in op.y:
            i = self.CELL + 4 * cell
            self._write(s, cell, agent + 1, report)
            before = s[i] - 1
            if first:
                before = tile << 2 * SUM_BITS
            elif before >> 2 * SUM_BITS != tile:
                report("stale", f"{self.code.cells[cell][0]}: an MMA adds to the sum of another tile")
            added = 1 << (k & (1 << K_BITS) - 1) if k >= 0 else 0
            s[i] = (before + (1 << SUM_BITS) | added) + 1
            s[i + 1] = agent + 1
            s[i + 2] += 1

    def _sum(self, s: State, cell: int, expected: tuple[int, int, int], report: Report) -> None:
        """Read an accumulator that must hold the whole sum of a tile."""
        stamp = self._read(s, cell, report)
        if stamp is None:
            return
        tile, mmas, k = expected
        all_k = (1 << k) - 1
        added = (stamp - 1) & (1 << SUM_BITS) - 1
        name = self.code.cells[cell][0]
        if not stamp or (stamp - 1) >> SUM_BITS != tile << SUM_BITS | mmas or added.bit_count() != mmas:
            report("stale", f"{name} is read without the whole sum of tile {tile}")
        elif added != all_k:
            report("sum", f"{name}: the program adds {mmas} of {k} k tiles")

    def _land(self, s: State, flight: int, report: Report) -> bool:
        f = self.code.flights[flight]
        s[self.AIR] &= ~(1 << flight)
        if f.reads is not None:
            self._touch(s, self.code.cells[f.reads][1], report)
            s[self.CELL + 4 * f.reads + 3] -= 1
        for cell, stamp in f.lands:
            self._touch(s, self.code.cells[cell][1], report)
            i = self.CELL + 4 * cell
            s[i] = stamp
            s[i + 2] -= 1
            if not s[i + 2]:
                s[i + 1] = 0
        for barrier, size in f.counts:
            self._use(s, barrier, report)
            s[self.BAR + 3 * barrier + 2] -= size
            self._complete(s, barrier)
        return True
