"""Runs the statements of a kernel for one warp, and writes down what its threads do.

Statements become closures once; a warp then runs them with its own values. A condition that differs between lanes
splits the warp: each side runs for its lanes only, and what either side stored has no value afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import cast

from gemmspec.audit.effect import Assign, Effect, Registers, Settle
from gemmspec.audit.effects import Effects
from gemmspec.audit.events import FULL, Done, Event
from gemmspec.audit.ir import (
    Attribute,
    Call,
    Declare,
    Do,
    Expr,
    For,
    Ids,
    If,
    Let,
    Set,
    Stmt,
    Tensor,
    Tile,
    Unknown,
    While,
)
from gemmspec.audit.places import Places
from gemmspec.audit.terms import (
    ELECTED,
    LANE,
    WARP,
    Terms,
    Unfollowed,
    depends_on,
    event_function,
    function,
    is_scalar,
    number,
    pure,
    varies,
)

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


class Machine:
    """Translates statements. Those that it cannot follow become an `unknown` event wherever they run."""

    def __init__(self, terms: Terms, places: Places) -> None:
        self.terms = terms
        self.effects = Effects(terms, places)
        self.stored: set[int] = set()
        """Places that the statements translated so far store to."""

    def steps(self, body: tuple[Stmt, ...]) -> tuple[Step, ...]:
        """Return the steps of a body."""
        out: list[Step] = []
        for statement in body:
            try:
                out.extend(self._steps(statement))
            except Unfollowed as error:
                out.append(_unknown(str(error)))
        return tuple(out)

    def _steps(self, s: Stmt) -> list[Step]:
        match s:
            case Do():
                return [self._effect(e) for e in self.effects.instruction(s)]
            case Tile():
                return [self._effect(e) for e in self.effects.tile(s)]
            case Set(tensor, indices, value):
                return [self._set(tensor, indices, value)]
            case Let():
                return self._let(s)
            case If():
                return [self._if(s)]
            case For():
                return [self._for(s)]
            case While():
                return [self._while(s)]
            case Declare(tensor):
                self._declare(tensor)
                return []
            case Ids(scope, variables, _):
                if len(variables) != 1:
                    raise Unfollowed("scope ids of several dimensions")
                self.terms.bind_id(variables[0], scope)
                return []
            case Attribute():
                return []
            case Unknown(text):
                raise Unfollowed(text)

    def _effect(self, effect: Effect) -> Step:
        if isinstance(effect, Assign):
            return self._store(effect.place, effect.value)
        if isinstance(effect, Settle):
            return _settle(effect.registers)
        names, numbers = effect.names, effect.numbers
        if effect.verb == "warp sync":
            return _warp_sync
        if effect.verb == "write row":
            return self._rows(names, numbers)
        make = event_function(effect.verb, names, numbers)
        if any(map(varies, numbers)):
            return _by_lane(make)

        def step(w: Warp) -> None:
            w.out.append((make(w.v), w.lanes))

        return step

    def _rows(self, names: tuple[str, ...], numbers: tuple[str, ...]) -> Step:
        """Write one row a thread: a write from the first row on, if each thread has the row of its number."""
        row, thread, *others = numbers
        if varies(row) or any(map(varies, others)) or not pure(thread):
            raise Unfollowed("a write of other rows or columns by each thread")
        make, own = event_function("write", names, (row, *others)), function(f"{thread} == v[{WARP}] * 32 + v[{LANE}]")
        right = _lanewise(own, thread)

        def step(w: Warp) -> None:
            if right(w) == w.lanes:
                w.out.append((make(w.v), w.lanes))
            else:
                w.note("a write of rows that are not the threads' own")

        return step

    def _store(self, place: int, value: str) -> Step:
        if varies(value):
            raise Unfollowed("a variable with another value in each thread")
        self.stored.add(place)
        get = function(value)

        def step(w: Warp) -> None:
            w.v[place] = get(w.v)

        return step

    def _set(self, tensor: Tensor, indices: tuple[Expr, ...], value: Expr) -> Step:
        if not is_scalar(tensor) or number(indices[0]) != 0:
            raise Unfollowed(f"a store to {tensor.name or 'a tensor'} ({tensor.scope})")
        return self._store(self.terms.place(tensor.key), self.terms.text(value))

    def _let(self, s: Let) -> list[Step]:
        if self.effects.point(s.var.key, s.value):
            return []
        text = self.terms.text(s.value)
        if varies(text):
            if not pure(text):
                raise Unfollowed(f"{s.var.name}, with another value in each thread")
            self.terms.inlined[s.var.key] = text
            return []
        return [self._store(self.terms.place(s.var.key), text)]

    def _declare(self, tensor: Tensor) -> None:
        if tensor.data is None:
            return
        if tensor.scope == "shared" and not self.effects.point(tensor.key, tensor.data):
            raise Unfollowed(f"a view of {tensor.name or 'shared memory'}")
        match tensor.data:
            case Call("buffer_data", (Tensor() as root,)) if tensor.scope == "local":
                self.effects.roots[tensor.key] = self.effects.roots.get(root.key, root.key)
            case _:
                pass

    def _branch(self, body: tuple[Stmt, ...]) -> tuple[tuple[Step, ...], set[int]]:
        """Return the steps of a body and the places that they store to."""
        before, self.stored = self.stored, set()
        steps = self.steps(body)
        inside, self.stored = self.stored, before | self.stored
        return steps, inside

    def _if(self, s: If) -> Step:
        condition = self.terms.text(s.condition)
        then, first = self._branch(s.then)
        other, second = self._branch(s.other)
        if varies(condition):
            return _split(condition, then, other, tuple(first | second))
        holds = function(condition)

        def step(w: Warp) -> None:
            for inner in then if holds(w.v) else other:
                inner(w)

        return step

    def _for(self, s: For) -> Step:
        moved = self.effects.move(s)
        if moved is not None:
            (only,) = map(self._effect, moved)
            return only
        place, start, extent = self.terms.place(s.var.key), self.terms.text(s.start), self.terms.text(s.extent)
        if varies(start) or varies(extent):
            raise Unfollowed(f"a loop over {s.var.name} that differs between threads")
        body = self.steps(s.body)
        first, count, unrolled = function(start), function(extent), s.unrolled

        def step(w: Warp) -> None:
            v, begin, n = w.v, first(w.v), count(w.v)
            if not unrolled:
                w.out.append((Event("loop", (), (n,)), w.lanes))
            for i in range(n) if unrolled else w.sampled(n):
                v[place] = begin + i
                for inner in body:
                    inner(w)

        return step

    def _while(self, s: While) -> Step:
        condition = self.terms.text(s.condition)
        if varies(condition):
            raise Unfollowed("a while loop that differs between threads")
        holds, body = function(condition), self.steps(s.body)

        def step(w: Warp) -> None:
            for _ in range(w.tiles):
                if not holds(w.v):
                    return
                for inner in body:
                    inner(w)

        return step


def _unknown(text: str) -> Step:
    first = text.split("\n", 1)[0][:200]

    def step(w: Warp) -> None:
        w.note(first)

    return step


def _settle(registers: Registers) -> Step:
    def step(w: Warp) -> None:
        for place, coming in registers.coming.items():
            w.v[place] = w.v[coming]

    return step


def _warp_sync(w: Warp) -> None:
    if w.lanes != FULL:
        w.note("a warp sync that only part of the warp reaches")


def lanes_of(mask: int) -> Iterator[int]:
    """Yield the lanes of a mask."""
    return (lane for lane in range(32) if mask >> lane & 1)


def _by_lane(make: Callable[[list[int]], Event]) -> Step:
    """Return the step that makes one event for each group of lanes to whom it is the same."""

    def step(w: Warp) -> None:
        groups: dict[Event, int] = {}
        for lane in lanes_of(w.lanes):
            w.v[LANE] = lane
            event = make(w.v)
            groups[event] = groups.get(event, 0) | 1 << lane
        w.out.extend(groups.items())

    return step


def _lanewise(holds: Callable[[list[int]], int], text: str) -> Callable[[Warp], int]:
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


def _split(condition: str, then: tuple[Step, ...], other: tuple[Step, ...], stored: tuple[int, ...]) -> Step:
    lanes_where = _lanewise(function(condition), condition)
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
