"""Python source text in blocks, laid out as `ruff format` would.

A statement that does not fit into `WIDTH` columns becomes a call with one argument a line and a trailing comma. That
layout is the same for every longer line length, so the text is clean under a user's settings as well as ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from gemmspec.codegen.words import both

WIDTH = 88
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class Call:
    """`head(args)tail`: on one line where it fits, else with one argument a line."""

    head: str
    args: tuple[str, ...]
    tail: str = ""

    def lines(self, depth: int) -> Iterable[str]:
        margin = _INDENT * depth
        whole = f"{margin}{self.head}({', '.join(self.args)}){self.tail}"
        if len(whole) <= WIDTH or not self.args:
            yield whole
            return
        yield f"{margin}{self.head}("
        for arg in self.args:
            yield from _argument_lines(arg, margin + _INDENT)
        yield f"{margin}){self.tail}"


def _argument_lines(arg: str, margin: str) -> Iterable[str]:
    """Yield an argument on one line where it fits, else its subscript with one index a line."""
    name, bracket, rest = arg.partition("[")
    if len(margin) + len(arg) + 1 <= WIDTH or not bracket or not rest.endswith("]"):
        yield f"{margin}{arg},"
        return
    yield f"{margin}{name}["
    yield from (f"{margin}{_INDENT}{index}," for index in _parts(rest[:-1]))
    yield f"{margin}],"


def _parts(indices: str) -> Iterable[str]:
    """Yield what commas part, those within brackets aside."""
    depth, start = 0, 0
    for i, c in enumerate(indices):
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            yield indices[start:i].strip()
            start = i + 1
    yield indices[start:].strip()


@dataclass(slots=True)
class Block:
    """Statements of one depth, under a `head` that ends in a colon (none: in the block around it).

    `first` holds what has to stand before all of `items`: names that the statements use.
    """

    head: Call | None = None
    first: list[str | Call] = field(default_factory=list["str | Call"])
    items: list[str | Call | Block] = field(default_factory=list["str | Call | Block"])

    def line(self, text: str) -> None:
        """Add one line; an empty one separates."""
        self.items.append(text)

    def call(self, head: str, *args: str, tail: str = "") -> None:
        """Add a call."""
        self.items.append(Call(head, args, tail))

    def block(self, head: str) -> Block:
        """Add a block under a one-line head, given without its colon."""
        return self.call_block(Call(f"{head}:", ()))

    def call_block(self, head: Call) -> Block:
        """Add a block under a head that may take several lines."""
        block = Block(head)
        self.items.append(block)
        return block

    def lines(self, depth: int = 0) -> Iterable[str]:
        """Yield the lines of the block, its statements at `depth` where it has no head, else one deeper."""
        head, first, items = self._joined()
        if head is not None:
            yield from _head_lines(head, depth)
            depth += 1
        for item in (*first, *items):
            match item:
                case str():
                    yield _INDENT * depth + item if item else ""
                case Call() | Block():
                    yield from item.lines(depth)

    def _joined(self) -> tuple[Call | None, list[str | Call], list[str | Call | Block]]:
        """Return the parts of the block; a condition that holds nothing but another one is joined with it."""
        head, first, items = self.head, self.first, self.items
        while not first and len(items) == 1 and isinstance(items[0], Block):
            inner = items[0]
            conditions = [_condition(h) for h in (head, inner.head)]
            if not all(conditions):
                break
            head, first, items = Call(f"if {both(*conditions)}:", ()), inner.first, inner.items
        return head, first, items


def _condition(head: Call | None) -> str | None:
    """Return the condition of a plain `if`. An election is none: it counts who reaches it."""
    if head is None or head.args or not head.head.startswith("if ") or "elect_sync" in head.head:
        return None
    return head.head[3:-1]


def _head_lines(head: Call, depth: int) -> Iterable[str]:
    return head.lines(depth) if head.args else (_INDENT * depth + head.head,)


def uses(text: str, name: str) -> bool:
    """Say whether a name occurs in program text."""
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text) is not None
