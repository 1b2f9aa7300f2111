"""One warp at work: the values that it has, the lanes that are active, and what was done.

A condition that differs between lanes splits the warp: each side runs for its lanes only, and what either side stored
has no value afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast

from gemmspec.audit.effect import Registers
from gemmspec.audit.events import FULL, Done, Event
from gemmspec.audit.terms import ELECTED, LANE, depends_on, function, pure

NO_VALUE = cast("int", None)
"""What a place holds that different lanes gave different values: any use of it raises TypeError."""


@dataclass(slots=True)
class Warp:
    """One warp at work. `tiles`: how many rounds its loop over tiles may take."""

    v: list[int]
    tiles: int
    sampled: Callable[[int], Iterator[int]]
    lanes: int = FULL
    out: list[Done] = field(default_factory=list[Done])
    known: dict[tuple[int, ...], int] = field(default_factory=dict[tuple[int, ...], int])
    """What was found out of a lane-wise text, by its number, the lanes, and all else that it depends on."""

    def run(self, steps: tuple[Step, ...]) -> list[Done]:
        """Run steps and return what was done."""
        self.out = []
        try:
            for step in steps:
                step(self)
        except TypeError:
            self.note("a value that differs between the threads of a warp")
        except (ZeroDivisionError, ValueError, OverflowError) as error:
            self.note(f"an expression without value: {error}")
        return self.out

    def note(self, text: str) -> None:
        self.out.append((Event("unknown", (text,)), self.lanes))


Step = Callable[[Warp], None]
Value = Callable[[list[int]], int]


def trips(place: int, first: Value, count: Value, body: tuple[Step, ...], varying: list[Value]) -> Step:
    """Return a loop that is followed through some of its trips. `varying`: what its index is used for."""

    def step(w: Warp) -> None:
        v, begin, n = w.v, first(w.v), count(w.v)
        w.out.append((Event("loop", (), (n,)), w.lanes))
        last = -1
        for i in w.sampled(n):
            if i > last + 1 and not steady(v, place, begin + last, begin + i, varying):
                w.note("a loop that is not alike in all of its trips")
            last, v[place] = i, begin + i
            for inner in body:
                inner(w)

    return step


def steady(v: list[int], place: int, start: int, end: int, varying: list[Value]) -> bool:
    """Say whether all that depends on an index grows by the same in each of its trips between two."""
    for value in varying:
        seen: list[int] = []
        for i in range(start, end + 1):
            v[place] = i
            seen.append(value(v))
        inner = seen[1:-1]
        # Conditions turn at the first and the last trips, which are followed.
        grown = {b - a for a, b in pairwise(inner)}
        if len(grown) > 1:
            return False
    return True


def settle(registers: Registers) -> Step:
    def step(w: Warp) -> None:
        for place, coming in registers.coming.items():
            w.v[place] = w.v[coming]

    return step


def lanes_of(mask: int) -> Iterator[int]:
    """Yield the lanes of a mask."""
    return (lane for lane in range(32) if mask >> lane & 1)


def by_lane(make: Callable[[list[int]], Event]) -> Step:
    """Return the step that makes one event for each group of lanes to whom it is the same."""

    def step(w: Warp) -> None:
        groups: dict[Event, int] = {}
        for lane in lanes_of(w.lanes):
            w.v[LANE] = lane
            event = make(w.v)
            groups[event] = groups.get(event, 0) | 1 << lane
        w.out.extend(groups.items())

    return step


def lanewise(holds: Callable[[list[int]], int], text: str) -> Callable[[Warp], int]:
    """Return the function of a warp that finds the lanes for which a text holds."""
    places = depends_on(text)
    ids, name = tuple(p for p in places if p not in (LANE, ELECTED)), id(holds)
    always = pure(text)

    def lanes_where(w: Warp) -> int:
        v = w.v
        key = (name, w.lanes, *[v[p] for p in ids])
        if always and key in w.known:
            return w.known[key]
        v[ELECTED] = (w.lanes & -w.lanes).bit_length() - 1
        taken = 0
        for lane in lanes_of(w.lanes):
            v[LANE] = lane
            if holds(v):
                taken |= 1 << lane
        if always:
            w.known[key] = taken
        return taken

    return lanes_where


def split(condition: str, then: tuple[Step, ...], other: tuple[Step, ...], stored: tuple[int, ...]) -> Step:
    lanes_where = lanewise(function(condition), condition)
    elects = ELECTED in depends_on(condition)

    def step(w: Warp) -> None:
        before = w.lanes
        if elects and before != FULL:
            w.note("elect_sync that only part of the warp reaches")
        taken = lanes_where(w)
        rest = before & ~taken
        for lanes, steps in ((taken, then), (rest, other)):
            if lanes:
                w.lanes = lanes
                for inner in steps:
                    inner(w)
        w.lanes = before
        if taken and rest:
            for place in stored:
                w.v[place] = NO_VALUE

    return step
