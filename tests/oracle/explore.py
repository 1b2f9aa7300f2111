"""Explore every interleaving of a Protocol for given trip counts, or walk through some at random.

`explore` proves for one (K, tiles); `random_walks` finds, and proves nothing. What is explored, and from which
reading of the PTX ISA, is in `machine`; `reduce` leaves out orders that cannot differ.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, field

from gemmspec.protocol.program import Protocol

from .machine import Machine, State
from .reduce import Reducer
from .unroll import unroll

RACES = (
    "race",
    "stale",
    "uninitialised",
    "exit",
    "bounds",
    "over-arrival",
    "split",
    "bytes",
    "output",
    "impossible",
    "sum",
)


@dataclass
class Verdict:
    """What was found for one (K, tiles). `complete`: every interleaving was covered, so what is false is so.

    `kinds` holds every kind of violation with its first witness:
    deadlock; lapped; race (overlapping accesses); stale (contents of another time); uninitialised (barriers); exit (a
    CTA touched after its end); bounds (no such slot or CTA); over-arrival (a phase without pending arrivals still
    lacks bytes); split (a phase completes amid the arrivals of one instance's threads); bytes (a run ends with bytes
    that never came, or that nobody expected); output (an epilogue does not store each chunk once); impossible (no
    instruction does that); sum (k tiles are left out); and one that is not counted as bad: unbalanced (a run ends with
    a phase begun and not completed).
    """

    kinds: dict[str, str] = field(default_factory=dict)
    complete: bool = True
    states: int = 0

    @property
    def deadlock(self) -> bool:
        return "deadlock" in self.kinds

    @property
    def race(self) -> bool:
        return any(kind in self.kinds for kind in RACES)

    @property
    def lapped(self) -> bool:
        """Whether one wait passes on different phases in different interleavings: parity aliasing."""
        return "lapped" in self.kinds

    @property
    def unbalanced(self) -> bool:
        """Whether some run ends with a phase begun and not completed (weaker: nobody may be harmed)."""
        return "unbalanced" in self.kinds

    @property
    def bad(self) -> bool:
        return self.deadlock or self.race or self.lapped

    @property
    def witness(self) -> str:
        return next((text for kind, text in self.kinds.items() if kind != "unbalanced"), "")

    def __str__(self) -> str:
        found = ", ".join(sorted(self.kinds)) or "clean"
        return f"{found}{'' if self.complete else ' (incomplete)'}, {self.states} states"


def explore(
    protocol: Protocol,
    k: int,
    tiles: int,
    *,
    limit: int = 200_000,
    reduced: bool = True,
    first: bool = False,
    until: Collection[str] = (),
    in_order: bool = True,
) -> Verdict:
    """Explore all interleavings, within `limit` states and reductions of a state (a few each, where much can clash).

    `first`: stop at the first violation; `until`: stop when one of these kinds is found; `reduced`: with
    partial-order reduction; `in_order`: see `unroll`.
    """
    machine = Machine(unroll(protocol, k, tiles, in_order))
    return _Search(machine, limit, first, until).run(Reducer(machine) if reduced else None)


def random_walks(protocol: Protocol, k: int, tiles: int, n: int = 100, seed: int = 0, first: bool = False) -> Verdict:
    """Follow `n` random interleavings. Never complete."""
    machine = Machine(unroll(protocol, k, tiles))
    search = _Search(machine, 0)
    search.verdict.complete = False
    rng = random.Random(seed)
    for _ in range(n):
        # Some processes are slow for a whole walk: a uniform choice would rarely let anyone fall far behind.
        slow: dict[int, float] = {}
        state, live = machine.start(), True
        search.path = []
        while live and (enabled := machine.enabled(state)):
            weights = [slow.setdefault(p, rng.choice((1.0, 1.0, 0.1, 0.01))) for p in enabled]
            live = search.step(state, rng.choices(enabled, weights)[0])
            search.verdict.states += 1
        if live:
            search.end(state)
        if first and search.verdict.bad:
            break
    return search.verdict


class _Search:
    """Collects violations along one path after another."""

    def __init__(self, machine: Machine, limit: int, first: bool = False, until: Collection[str] = ()) -> None:
        self.m, self.limit, self.first, self.until = machine, limit, first, set(until)
        self.verdict = Verdict()
        self.path: list[str] = []
        self.passed: dict[tuple[int, int], tuple[int, list[str]]] = {}
        """For each wait, the phases completed when it passed, and the path there."""

    def report(self, kind: str, text: str) -> None:
        if kind not in self.verdict.kinds:
            self.verdict.kinds[kind] = "\n".join([*self.path, f"=> {kind}: {text}"])

    def step(self, s: State, process: int) -> bool:
        """Take one step in place; return whether the run goes on."""
        self.path.append(self.m.text(s, process))
        if process < self.m.na:
            phase = self.m.waited(s, process)
            if phase is not None:
                old = self.passed.setdefault((process, s[process]), (phase, []))
                if old[0] != phase:
                    self.report("lapped", f"passes after {phase} phases; in another order after {old[0]}")
        return self.m.step(s, process, self.report)

    def end(self, s: State) -> None:
        """Judge a state in which nothing can step."""
        if not self.m.ended(s):
            stuck = [self.m.text(s, a) for a in range(self.m.na) if s[a] < self.m.length[a]]
            self.report("deadlock", "; ".join(stuck))
        for b, (name, cta, slot, count) in enumerate(self.m.code.barriers):
            _, pending, size = s[self.m.BAR + 3 * b : self.m.BAR + 3 * b + 3]
            if (pending, size) != (count, 0):
                left = f"{pending} of {count} arrivals and {size} bytes pending"
                # Bytes add up from phase to phase, and the count has a range (PTX ISA: 2^20 - 1); arrivals do not.
                kind = "bytes" if size and self.m.ended(s) else "unbalanced"
                self.report(kind, f"{name}[{slot}] of CTA {cta} ends with {left}")

    def run(self, reducer: Reducer | None) -> Verdict:
        m, verdict = self.m, self.verdict
        seen: set[tuple[int, ...]] = set()
        stack: list[tuple[State, list[int], int]] = []

        def push(s: State) -> None:
            """Stand on a state, if it is new, to take its steps."""
            key = tuple(s)
            if key not in seen:
                seen.add(key)
                enabled = m.enabled(s)
                if not enabled:
                    self.end(s)
                stack.append(
                    (s, reducer.choose(s, enabled) if reducer and len(enabled) > 1 else enabled, len(self.path))
                )

        push(m.start())
        while stack:
            found = (self.first and verdict.bad) or self.until & verdict.kinds.keys()
            if found or len(seen) + (reducer.work if reducer else 0) >= self.limit:
                verdict.complete = False
                break
            s, processes, depth = stack[-1]
            if not processes:
                stack.pop()
                continue
            process = processes.pop()
            del self.path[depth:]
            after = s[:] if processes else s
            if self.step(after, process):
                push(after)
        verdict.states = len(seen)
        return verdict
