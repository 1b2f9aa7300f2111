"""Partial-order reduction: from each state, explore a persistent set of processes only.

Godefroid (LNCS 1032): a set T of enabled transitions is persistent if nothing that the other processes can do before
a transition of T runs is dependent with it. A search over persistent sets of an acyclic state space passes through one
interleaving of every Mazurkiewicz trace. Every check of `Machine` looks only at a barrier, a cell or an exit that
the checking step touches, so two interleavings of one trace report the same violations: none is lost.

What the others can do is over-approximated: from the state, with T's processes frozen, let everything else run,
where a wait passes if enough arrivals and bytes may come. An over-approximation costs states, never soundness.

Two steps on one barrier are independent if no order of them (and of all else in reach) completes a phase, or if the
phase can complete only after all of them; arrivals without bytes always commute. Steps on one cell are independent
if none writes; the MMAs of one agent accumulate in order, so their beginnings and ends commute.
"""

from __future__ import annotations

from typing import NamedTuple

from .code import Do, Flight, Op
from .machine import Machine, State

Touch = tuple[int, bool, int]
"""A cell, whether it is written, and the agent whose MMA writes it (-1: no MMA)."""


class Marks(NamedTuple):
    """What one step touches. `on`: (barrier, arrivals, bytes expected, bytes completed, is it a wait)."""

    on: tuple[tuple[int, int, int, int, bool], ...] = ()
    cells: tuple[Touch, ...] = ()
    ctas: tuple[int, ...] = ()


def marks_of_op(op: Op, agent: int, flights: list[Flight]) -> Marks:
    """Return what an agent's operation touches."""
    match op.code:
        case Do.WAIT:
            return Marks(on=((op.x, 0, 0, 0, True),))
        case Do.ARRIVE:
            return Marks(on=((op.x, op.y, 0, 0, False),))
        case Do.EXPECT:
            return Marks(on=((op.x, 1, op.y, 0, False),))
        case Do.LOAD:
            return Marks(cells=tuple((c, True, -1) for f in op.x for c, _ in flights[f].lands))
        case Do.MMA:
            return Marks(cells=(*((c, False, -1) for c, _ in op.x), *((c, True, agent) for c in op.y)))
        case Do.READ | Do.ISSUE:
            return Marks(cells=((op.x, False, -1),))
        case Do.WRITE:
            return Marks(cells=((op.x, True, -1), (op.z[2], False, -1), *((c, False, -1) for c, _ in op.z[1])))
        case Do.SEND | Do.ADD:
            sums = tuple((c, False, -1) for c, _ in op.y)
            return Marks(cells=(*((c, op.code == Do.SEND, -1) for c, _ in op.x), *sums))
        case _:
            return Marks()


def marks_of_flight(f: Flight) -> Marks:
    """Return what the end of something asynchronous touches."""
    cells: list[Touch] = [(c, True, -1) for c, _ in f.lands]
    if f.reads is not None:
        cells.append((f.reads, False, -1))
    if f.fills is not None:
        cells.append((f.fills, True, -1))
    return Marks(on=tuple((b, 0, 0, size, False) for b, size in f.counts), cells=tuple(cells))


class Reducer:
    """Chooses, in each state, which processes to let step."""

    def __init__(self, machine: Machine) -> None:
        self.m, code = machine, machine.code
        self.code = code
        cta_of_cell = [cta for _, cta in code.cells]

        def placed(m: Marks) -> Marks:
            ctas = {code.barriers[b][1] for b, *_ in m.on} | {cta_of_cell[c] for c, *_ in m.cells}
            return m._replace(ctas=tuple(sorted(ctas)))

        self.op_marks = [[placed(marks_of_op(op, n, code.flights)) for op in a.ops] for n, a in enumerate(code.agents)]
        self.end_marks = [
            [placed(marks_of_op(op, n, code.flights)) for op in a.mmas] for n, a in enumerate(code.agents)
        ]
        self.flight_marks = [placed(marks_of_flight(f)) for f in code.flights]
        self.queue_marks = [[placed(Marks(on=((p.barrier, 1, 0, 0, False),))) for p in q[2]] for q in code.queues]
        self.flights_of: list[dict[int, tuple[int, ...]]] = [
            {i: _issued(op) for i, op in enumerate(a.ops) if _issued(op)} for a in code.agents
        ]
        self.work = 0
        """How often it was worked out what others may do."""
        self.queues_of = [[q for q, (a, _, _) in enumerate(code.queues) if a == n] for n in range(len(code.agents))]

        self.busy = [bool(a.mmas or self.queues_of[n]) for n, a in enumerate(code.agents)]

    def marks(self, s: State, process: int) -> Marks:
        """Return what the next step of a process touches."""
        m = self.m
        if process < m.engine:
            marks = self.op_marks[process][s[process]]
            rest = s[m.REST + process]
            if marks.on and marks.on[0][1] > 1:
                b, n, *_ = marks.on[0]
                return marks._replace(on=((b, min(rest or n, s[m.BAR + 3 * b + 1]) or n, 0, 0, False),))
            return marks
        if process < m.queue:
            a = process - m.engine
            return self.end_marks[a][s[m.DONE + a]]
        if process < m.exit:
            q = process - m.queue
            return self.queue_marks[q][s[m.FIRED + q]]
        if process < m.flight:
            return Marks(ctas=(-1,))
        return self.flight_marks[process - m.flight]

    def choose(self, s: State, enabled: list[int]) -> list[int]:
        """Return a persistent subset of the enabled processes."""
        best = enabled
        for process in enabled:
            if process < self.m.engine and not self.op_marks[process][s[process]].ctas:
                return [process]
        for process in enabled:
            found = self._persistent(s, process, enabled)
            if len(found) == 1:
                return found
            if len(found) < len(best):
                best = found
        return best

    def _persistent(self, s: State, seed: int, enabled: list[int]) -> list[int]:
        chosen = {seed}
        while True:
            self.work += 1
            clash = Reach(self, s, chosen).clash()
            if clash is None:
                return sorted(chosen)
            if clash - chosen and clash <= set(enabled):
                chosen |= clash
            else:
                return enabled


def _issued(op: Op) -> tuple[int, ...]:
    if op.code == Do.LOAD:
        return op.x
    return (op.z,) if op.code in (Do.READ, Do.ISSUE) else ()


class Reach:
    """What the processes other than `frozen` may do, as far as it matters to the next steps of those."""

    def __init__(self, r: Reducer, s: State, frozen: set[int]) -> None:
        self.r, self.m, self.code, self.s, self.frozen = r, r.m, r.code, s, frozen
        self.own = {p: r.marks(s, p) for p in frozen}
        self.barriers = {b for m in self.own.values() for b, *_ in m.on}
        self.cells: dict[int, list[Touch]] = {}
        for m in self.own.values():
            for touch in m.cells:
                self.cells.setdefault(touch[0], []).append(touch)
        self.ctas = {c for m in self.own.values() for c in m.ctas}
        self.cta_steps = {p for p in frozen if r.m.exit <= p < r.m.flight}
        self.arrivals: dict[int, int] = {}
        self.expects: dict[int, list[int]] = {}
        self.completes: dict[int, int] = {}
        self.waits: dict[int, set[int]] = {}
        self.on: dict[int, set[int]] = {}
        """For each watched barrier, the processes that step on it."""
        self.found: set[int] = set()
        self.flips: dict[tuple[int, int], int] = {}
        self.syncs: dict[int, int] = {}

    def clash(self) -> set[int] | None:
        """Return processes whose steps may be dependent with a frozen one's; None if there are none."""
        self._run()
        if self.found:
            return self.found
        for process, marks in self.own.items():
            for barrier, arrivals, expected, completed, wait in marks.on:
                if wait:
                    if self._may_complete(barrier, 1) and self.m.runnable(self.s, process):
                        return self.on.get(barrier) or set(self.frozen)
                elif self._dependent(barrier, arrivals, expected, completed):
                    return self.on[barrier]
        return None

    def _dependent(self, b: int, arrivals: int, expected: int, completed: int) -> bool:
        """Return whether a step on a barrier may not commute with all that may happen there."""
        if b not in self.on:
            return False
        pending, size = self.s[self.m.BAR + 3 * b + 1], self.s[self.m.BAR + 3 * b + 2]
        total = self.arrivals.get(b, 0) + arrivals
        exps, cpl = self.expects.get(b, ()), self.completes.get(b, 0)
        if total < pending:
            return False
        if not (size or exps or cpl or expected or completed):
            return b in self.waits
        left = size + sum(exps) + expected - cpl - completed
        if total > pending or left < 0:
            return True
        return left == 0 and b in self.waits

    def _may_complete(self, b: int, times: int) -> bool:
        """Return whether what is in reach may complete that many phases of a barrier."""
        i = self.m.BAR + 3 * b
        pending, size = self.s[i + 1], self.s[i + 2]
        exps, cpl = self.expects.get(b, []), self.completes.get(b, 0)
        total = self.arrivals.get(b, 0)
        arrivals = pending + (times - 1) * self.code.barriers[b][3]
        if total < arrivals or sum(exps) < -size:
            return False
        # At the last completion no byte is pending, so all that was expected by then has come.
        needed = max(arrivals - (total - len(exps)), 0)
        return cpl >= size + sum(sorted(exps)[:needed])

    def _see(self, marks: Marks, root: int) -> None:
        """Take note of a step that may happen, by a process that `root` leads to."""
        for b, arrivals, expected, completed, wait in marks.on:
            if arrivals:
                self.arrivals[b] = self.arrivals.get(b, 0) + arrivals
            if expected:
                self.expects.setdefault(b, []).append(expected)
            if completed:
                self.completes[b] = self.completes.get(b, 0) + completed
            if b in self.barriers:
                self.on.setdefault(b, set()).add(root)
                if wait:
                    self.waits.setdefault(b, set()).add(root)
        for cell, write, group in marks.cells:
            for _, other, whose in self.cells.get(cell, ()):
                if (write or other) and (group < 0 or group != whose):
                    self.found.add(root)
        if self.cta_steps and any(p in self.cta_steps for c in marks.ctas for p in (self.m.exit + c, self.m.init + c)):
            self.found.add(root)

    def _run(self) -> None:
        m, s, code, r = self.m, self.s, self.code, self.r
        air, n = s[m.AIR], 0
        self.held = 0
        while air:
            low = air & -air
            air ^= low
            n = low.bit_length() - 1
            if m.flight + n in self.frozen:
                self.held |= low
            else:
                self._see(r.flight_marks[n], m.flight + n)
        self.at = [s[a] for a in range(m.na)]
        self.done = [s[m.DONE + a] for a in range(m.na)]
        self.fired = [s[m.FIRED + q] for q in range(len(code.queues))]
        ready = [False] * m.na
        inited = [s[m.IN + c] or (m.init + c) not in self.frozen for c in range(code.ctas)]
        for c in range(code.ctas):
            if not s[m.IN + c] and inited[c] and c in self.ctas:
                self.found.add(m.init + c)
        changed = True
        while changed and not self.found:
            changed = False
            for a in range(m.na):
                if a not in self.frozen:
                    if not ready[a] and s[a] == 0 and code.init and not all(inited[c] for c in code.ready[a]):
                        continue
                    ready[a] = True
                    changed |= self._advance(a)
                if r.busy[a]:
                    changed |= self._engines(a)
        for c in range(code.ctas):
            out = s[m.OUT + c] or (m.exit + c) in self.frozen
            if c in self.ctas and not out and all(self.at[a] == m.length[a] for a in m.of_cta[c]):
                self.found.add(m.exit + c)

    def _advance(self, a: int) -> bool:
        """Let an agent run as far as it may. Return whether it moved."""
        at, start = self.at[a], self.at[a]
        ops, marks, flights = self.code.agents[a].ops, self.r.op_marks[a], self.r.flights_of[a]
        while at < len(ops) and not self.found:
            op = ops[at]
            if not self._may_pass(a, op):
                break
            if op.code == Do.ARRIVE and at == self.s[a] and self.s[self.m.REST + a]:
                self._see(marks[at]._replace(on=((op.x, self.s[self.m.REST + a], 0, 0, False),)), a)
            elif marks[at].ctas:
                self._see(marks[at], a)
            if at in flights:
                for f in flights[at]:
                    self._see(self.r.flight_marks[f], a)
            elif op.code == Do.SYNC_ARRIVE:
                self.syncs[op.x] = self.syncs.get(op.x, 0) + 1
            at += 1
        self.at[a] = at
        return at > start

    def _may_pass(self, a: int, op: Op) -> bool:
        if op.code == Do.WAIT:
            flips = self.flips.get((a, op.x), 0)
            if (self.s[self.m.BAR + 3 * op.x] + flips) & 1 != op.y:
                return True
            if self._may_complete(op.x, flips + 1):
                self.flips[a, op.x] = flips + 1
                return True
            return False
        if op.code == Do.MASK:
            return not self.held & op.x
        if op.code == Do.DONE:
            return self.m.engine + a not in self.frozen or self.s[self.m.DONE + a] >= op.x
        if op.code == Do.SYNC_WAIT:
            return self.s[self.m.SYNC + op.x] + self.syncs.get(op.x, 0) >= op.y
        return True

    def _engines(self, a: int) -> bool:
        """Let an agent's MMAs end and its commits arrive. Return whether anything moved."""
        m, moved = self.m, False
        agent = self.code.agents[a]
        # Steps of an engine that could step already are its own; later ones come through the agent.
        if m.engine + a not in self.frozen:
            issued, now = agent.issued[self.at[a]], agent.issued[self.s[a]]
            while self.done[a] < issued:
                self._see(self.r.end_marks[a][self.done[a]], m.engine + a if self.s[m.DONE + a] < now else a)
                self.done[a] += 1
                moved = True
        for q in self.r.queues_of[a]:
            if m.queue + q in self.frozen:
                continue
            arrivals = self.code.queues[q][2]
            ready = m.queue_ready(self.s, q)
            while self.fired[q] < len(arrivals):
                p = arrivals[self.fired[q]]
                if self.at[a] <= p.op or self.done[a] < p.done:
                    break
                if any(self.fired[other] < least for other, least in p.after):
                    break
                root = m.queue + q if ready else a
                if not ready and self.s[m.DONE + a] < agent.issued[self.s[a]]:
                    root = m.engine + a
                self._see(self.r.queue_marks[q][self.fired[q]], root)
                self.fired[q] += 1
                moved = True
        return moved
