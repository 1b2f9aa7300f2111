"""Translates the statements of a kernel into steps that a warp can take."""

from __future__ import annotations

from gemmspec.audit.bounded import bounded_wait
from gemmspec.audit.effect import Assign, Effect, Settle
from gemmspec.audit.effects import Effects
from gemmspec.audit.ir import (
    Attribute,
    Call,
    Const,
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
from gemmspec.audit.warp import FULL, Step, Warp, by_lane, lanewise, settle, split, trips
from gemmspec.waits import Waits

# Attributes that `structure` reads, or that every kernel has.
_ATTRIBUTES = {"tirx.device_entry", "tirx.dyn_smem_bytes", "tirx.launch_bounds_min_blocks_per_sm"}


class Machine:
    """Translates statements. Those that it cannot follow become an `unknown` event wherever they run."""

    def __init__(self, terms: Terms, places: Places, waits: Waits | None = None) -> None:
        self.terms, self.waits = terms, waits
        self.effects = Effects(terms, places)
        self.texts: list[str] = []
        """Every text that a step evaluates."""
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
            case Set(tensor, (Const(0),), Call("cuda.func_call", args)):
                return [self._effect(e) for e in bounded_wait(self.terms, self.waits, self.effects.wait, tensor, args)]
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
            case Attribute(key):
                if key not in _ATTRIBUTES:
                    raise Unfollowed(f"attribute {key}")
                return []
            case Unknown(text):
                raise Unfollowed(text)

    def _effect(self, effect: Effect) -> Step:
        if isinstance(effect, Assign):
            return self._store(effect.place, effect.value)
        if isinstance(effect, Settle):
            return settle(effect.registers)
        names, numbers = effect.names, effect.numbers
        if effect.verb == "warp sync":
            return _warp_sync
        if effect.verb == "write row":
            return self._rows(names, numbers)
        self.texts.extend(numbers)
        make = event_function(effect.verb, names, numbers)
        if any(map(varies, numbers)):
            return by_lane(make)

        def step(w: Warp) -> None:
            w.out.append((make(w.v), w.lanes))

        return step

    def _rows(self, names: tuple[str, ...], numbers: tuple[str, ...]) -> Step:
        """Write one row a thread: a write from the first row on, if each thread has the row of its number."""
        row, thread, *others = numbers
        if varies(row) or any(map(varies, others)) or not pure(thread):
            raise Unfollowed("a write of other rows or columns by each thread")
        make, own = event_function("write", names, (row, *others)), function(f"{thread} == v[{WARP}] * 32 + v[{LANE}]")
        right = lanewise(own, thread)

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
        self.texts.append(value)
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
        self.texts.append(condition)
        then, first = self._branch(s.then)
        other, second = self._branch(s.other)
        if varies(condition):
            return split(condition, then, other, tuple(first | second))
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
        mark = len(self.texts)
        self.texts += (start, extent)
        body = self.steps(s.body)
        first, count = function(start), function(extent)
        if not s.unrolled:
            varying = [function(t) for t in dict.fromkeys(self.texts[mark:]) if place in depends_on(t)]
            return trips(place, first, count, body, varying)

        def step(w: Warp) -> None:
            v, begin = w.v, first(w.v)
            for i in range(count(v)):
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


def _warp_sync(w: Warp) -> None:
    if w.lanes != FULL:
        w.note("a warp sync that only part of the warp reaches")
