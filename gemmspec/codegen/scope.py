"""Where the text of a role stands: loops around it, names that it has introduced, cursors that it keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from gemmspec.codegen.kernel import Kernel
from gemmspec.codegen.words import is_name
from gemmspec.codegen.writer import Block, Call, uses
from gemmspec.protocol.program import Cursor, Loop, Program, Slot, Statement, Wait, walk
from gemmspec.vocabulary import LoopKind

_VARIABLES = {"stage": "ring", "acc": "acc", "buffer": "buf", "phase": "turn"}


@dataclass(frozen=True, slots=True)
class Inside:
    """A loop around a statement: its index, how often it runs, and the block that is its body."""

    kind: LoopKind
    index: str
    trips: str
    body: Block


@dataclass(frozen=True, slots=True)
class Scope:
    """The loops around a statement, outermost first, in the block of its role."""

    role: Block
    loops: tuple[Inside, ...] = ()

    def enter(self, loop: Inside) -> Scope:
        return Scope(self.role, (*self.loops, loop))

    def index(self, kind: LoopKind) -> str:
        """Return the index of the nearest loop of a kind; 0 outside of one."""
        return next((loop.index for loop in reversed(self.loops) if loop.kind is kind), "0")

    def trips(self, kind: LoopKind) -> str:
        """Return how often the nearest loop of a kind runs."""
        return next((loop.trips for loop in reversed(self.loops) if loop.kind is kind), "1")

    def name(self, wanted: str, expression: str) -> str:
        """Return a name for an expression, introduced where all that it needs is known."""
        if is_name(expression):
            return expression
        home = next((loop.body for loop in reversed(self.loops) if _needs(expression, loop)), self.role)
        for number in count(1):
            name = wanted if number == 1 else f"{wanted}{number}"
            line = Call(f"{name} = T.meta_var", (expression,))
            others = [c for block in self._blocks() for c in block.first if isinstance(c, Call) and c.head == line.head]
            if all(other == line for other in others):
                if line not in home.first:
                    home.first.append(line)
                return name
        raise AssertionError("there is always one more number")

    def free_index(self) -> str:
        """Return an index that no loop around has."""
        taken = {loop.index for loop in self.loops}
        return next(name for name in ("i", "j", *(f"i{n}" for n in range(100))) if name not in taken)

    def _blocks(self) -> Iterator[Block]:
        todo = [self.role]
        while todo:
            block = todo.pop()
            yield block
            todo.extend(item for item in block.items if isinstance(item, Block))


@dataclass(slots=True)
class Cursors:
    """How each cursor of a program is kept: a `PipelineState`, an index of the unrolled chunk loop, or not at all."""

    kernel: Kernel
    program: Program
    names: dict[int, str] = field(default_factory=dict[int, str])
    chunk_loops: dict[int, Loop] = field(default_factory=dict[int, Loop])
    phases: dict[int, int] = field(default_factory=dict[int, int])

    def __post_init__(self) -> None:
        waits = {c: s.phase for s in reversed(list(self.program.walk())) if isinstance(s, Wait)
                 if (c := s.slot.cursor) is not None}  # fmt: skip
        self.phases = waits
        for cursor in self.program.cursors:
            loop = self._chunk_loop(cursor)
            moving = cursor.depth > 1 and any(_moves(s, cursor) for s in self.program.walk())
            if loop is not None and cursor.id not in waits:
                self.chunk_loops[cursor.id] = loop
            elif moving or cursor.id in waits:
                self.names[cursor.id] = self._free(_VARIABLES.get(cursor.word, "ring"))

    def declarations(self) -> Iterator[str]:
        """Yield the states that the program keeps, with their first phase."""
        for cursor in self.program.cursors:
            if cursor.id in self.names:
                phase = self.phases.get(cursor.id, 0)
                yield f"{self.names[cursor.id]} = PipelineState({self.depth(cursor)}, phase={phase})"

    def advances(self, loop: Loop) -> Iterator[str]:
        """Yield the steps at the end of an iteration."""
        for cursor in loop.advances:
            if cursor in self.names:
                yield f"{self.names[cursor]}.advance()"

    def depth(self, cursor: Cursor) -> str:
        """Return the depth of a cursor's ring."""
        t = self.kernel.tiling
        words = {"stage": (t.stages, "STAGES"), "acc": (t.accumulators, "ACCS"), "buffer": (t.buffers, "BUFS")}
        value, name = words.get(cursor.word, (0, ""))
        return name if value == cursor.depth > 1 else str(cursor.depth)

    def position(self, slot: Slot, scope: Scope) -> str:
        """Return where in its ring a slot's cursor stands."""
        if slot.cursor is None or not slot.cursor_stride:
            return "0"
        cursor = self.program.cursors[slot.cursor]
        if cursor.depth == 1:
            return "0"
        depth = self.depth(cursor)
        if cursor.id in self.chunk_loops:
            index = scope.index(LoopKind.CHUNK)
            if slot.lag == 0 and self.chunk_loops[cursor.id].count == cursor.depth:
                return index
            return f"({index} + {cursor.depth - slot.lag}) % {depth}" if slot.lag else f"{index} % {depth}"
        stage = f"{self.names[cursor.id]}.stage"
        return f"({stage} + {depth} - {slot.lag}) % {depth}" if slot.lag else stage

    def parity(self, wait: Wait) -> str:
        """Return the parity that a wait asks for."""
        if wait.slot.cursor is None:
            return str(wait.phase)
        name = self.names[wait.slot.cursor]
        flip = " ^ 1" if self.phases[wait.slot.cursor] != wait.phase else ""
        # A slot that lies behind the ring's start was last passed one round earlier.
        late = f' ^ T.cast({name}.stage < {wait.slot.lag}, "int32")' if wait.slot.lag else ""
        return f"{name}.phase{flip}{late}"

    def _chunk_loop(self, cursor: Cursor) -> Loop | None:
        """Return the loop whose index tells the position: it alone moves the cursor, by whole rounds a tile."""
        movers = [s for s in self.program.walk() if isinstance(s, Loop) and cursor.id in s.advances]
        if len(movers) != 1 or movers[0].kind is not LoopKind.CHUNK or cursor.depth == 1:
            return None
        (loop,) = movers
        tiles = [s for s in self.program.body if isinstance(s, Loop) and s.kind is LoopKind.TILE]
        whole = (loop.count or 0) % cursor.depth == 0
        inner = sum(_moves(s, cursor) for s in walk(loop.body))
        here = any(s is loop for t in tiles for s in t.body)
        return loop if whole and here and inner == sum(_moves(s, cursor) for s in self.program.walk()) else None

    def _free(self, name: str) -> str:
        taken = set(self.names.values())
        return next(n for n in (name, *(f"{name}{i}" for i in range(2, 100))) if n not in taken)


def _moves(statement: Statement, cursor: Cursor) -> bool:
    """Say whether a statement names a slot that moves with the cursor."""
    slots = (getattr(statement, n, None) for n in ("slot", "barrier_slot", "a", "b", "acc", "buffer"))
    return any(isinstance(s, Slot) and s.cursor == cursor.id and s.cursor_stride > 0 for s in slots)


def _needs(expression: str, loop: Inside) -> bool:
    """Say whether an expression uses the index of a loop, or a name that is introduced in its body."""
    names = [c.head.partition(" ")[0] for c in loop.body.first if isinstance(c, Call)]
    return any(uses(expression, name) for name in (loop.index, *names) if name.isidentifier())
