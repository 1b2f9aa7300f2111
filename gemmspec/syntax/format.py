"""Given a `SourceFile` without syntax errors, return its text in the canonical layout; else the text as it is.

Moves white space only: the tokens, their order, all comments, and the blank lines that part groups stay.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gemmspec.source import SourceFile, Span
from gemmspec.syntax.nodes import BarrierNode, ItemNode, KernelNode, ProgramNode, RoleNode, TargetNode
from gemmspec.syntax.parse import parse
from gemmspec.syntax.scan import Token, tokens
from gemmspec.syntax.tables import COMMENT, END, NAME, NEWLINE, NUMBER, tables

_INDENT = "  "
_COMMENT_GAP = "  "
# What stands before each column of a table.
_HEADER_GAPS = ("", " ")
_ROLE_GAPS = ("", " ", " ", " ", "  ")
_BARRIER_GAPS = ("", " ", " ", "  ", " ", " ", "  ", "  ", "  ", "  ")
# Properties of a barrier with a column of their own, where they stand in this order.
_COLUMNS = ("via", "arrivals", "phase")

_NONE_BEFORE = {",", "]", "..", "^"}
_NONE_AFTER = {"[", "..", "^"}


@dataclass(slots=True)
class _Line:
    """One line of the output. `item`: the item that it is, unless it belongs to a program."""

    depth: int
    blank_before: bool
    words: list[Token]
    comment: str = ""
    item: ItemNode | None = None
    text: str = ""

    @property
    def opens(self) -> bool:
        return bool(self.words) and self.words[-1].kind == "{"

    def part(self, span: Span) -> str:
        """Return the tokens that lie in a span."""
        first = bisect_left(self.words, span.start, key=lambda word: word.start)
        return _join(self.words[first : bisect_left(self.words, span.end, first, key=lambda word: word.start)])


def format_source(source: SourceFile) -> str:
    """Return the text of the source in the canonical layout. Formatting that again changes nothing."""
    spec, errors = parse(source)
    if errors:
        return source.text
    lines = _lines(tokens(tables(), source.text))
    items = {item.span.start: item for item in spec.items if not isinstance(item, ProgramNode)}
    for line in lines:
        line.item = items.get(line.words[0].start) if line.words else None
        line.text = _INDENT * line.depth + (_join(line.words, statement=True) if line.words else line.comment)
    for table in _tables(lines):
        _align(table)
    _align_comments(lines)
    return "".join(("\n" if line.blank_before else "") + line.text + "\n" for line in lines)


def _lines(found: Iterable[Token]) -> list[_Line]:
    """Return the lines of the output: the head of a block, each of its statements and its end have one each."""
    lines: list[_Line] = []
    depth = newlines = 0
    fresh = True
    for token in found:
        if token.kind in (NEWLINE, END):
            newlines += 1
            fresh = True
            continue
        closes = token.kind == "}"
        depth -= closes
        blank = newlines > 1 and bool(lines) and not lines[-1].opens and not closes
        if token.kind == COMMENT:
            if newlines or not lines:
                lines.append(_Line(depth, blank, []))
            lines[-1].comment = token.text.rstrip()
        else:
            if fresh or closes:
                lines.append(_Line(depth, blank, []))
            lines[-1].words.append(token)
        newlines = 0
        fresh = closes or token.kind in ("{", COMMENT)
        depth += token.kind == "{"
    return lines


def _tables(lines: Iterable[_Line]) -> Iterator[list[_Line]]:
    """Yield the runs of items of one sort. A blank line ends a run, a comment line does not."""
    run: list[_Line] = []
    for line in lines:
        if run and (line.blank_before or (line.words and _gaps(line.item) != _gaps(run[0].item))):
            yield run
            run = []
        if line.words and _gaps(line.item):
            run.append(line)
    if run:
        yield run


def _gaps(item: ItemNode | None) -> tuple[str, ...]:
    """Return what parts the columns of a table of such items; () where there is no table."""
    match item:
        case None | KernelNode() | TargetNode() | ProgramNode():
            return ()
        case RoleNode():
            return _ROLE_GAPS
        case BarrierNode():
            return _BARRIER_GAPS
        case _:
            return _HEADER_GAPS


def _align(table: Sequence[_Line]) -> None:
    gaps = _gaps(table[0].item)
    rows = [_cells(line) for line in table]
    # The last cell of a short row reaches over the columns that it lacks.
    counted = [row if len(row) == len(gaps) else row[:-1] for row in rows]
    widths = [max((len(row[i]) for row in counted if i < len(row)), default=0) for i in range(len(gaps))]
    for line, row in zip(table, rows, strict=True):
        cells = [gaps[i] + cell.ljust(widths[i]) for i, cell in enumerate(row) if widths[i] or cell]
        line.text = "".join(cells).rstrip()


def _cells(line: _Line) -> list[str]:
    item = line.item
    if isinstance(item, RoleNode):
        kinds = line.part(item.kinds[0].span.to(item.kinds[-1].span))
        return ["role", item.name.text, "=", kinds, line.part(Span(item.placement.span.start, item.span.end))]
    if isinstance(item, BarrierNode):
        slots = line.part(item.slots.span) if item.slots is not None else ""
        sources = line.part(item.sources[0].span.to(item.sources[-1].span))
        waiters = line.part(item.waiters[0].span.to(item.waiters[-1].span))
        return ["barrier", item.name.text, slots, sources, "->", waiters, *_property_cells(line, item)]
    return [line.words[0].text, _join(line.words[1:])]


def _property_cells(line: _Line, item: BarrierNode) -> list[str]:
    texts = [(prop.name.text, line.part(prop.span)) for prop in item.properties]
    cells: list[str] = []
    rest = list(texts)
    for column in _COLUMNS:
        cells.append(rest.pop(0)[1] if rest and rest[0][0] == column else "")
    if any(name in _COLUMNS for name, _ in rest):
        return ["  ".join(text for _, text in texts)]
    return [*cells, "  ".join(text for _, text in rest)]


def _align_comments(lines: Sequence[_Line]) -> None:
    """Set the comments behind lines of one sort that follow each other in one column."""
    run: list[_Line] = []
    for line in [*lines, _Line(0, True, [])]:
        if run and not (line.words and line.comment and _is_like(run[-1], line)):
            width = max(len(other.text) for other in run)
            for other in run:
                other.text = other.text.ljust(width) + _COMMENT_GAP + other.comment
            run = []
        if line.words and line.comment:
            run.append(line)


def _is_like(line: _Line, after: _Line) -> bool:
    braces = {line.words[-1].kind, after.words[-1].kind} & {"{", "}"}
    same = line.depth == after.depth and _gaps(line.item) == _gaps(after.item)
    return same and not braces and not after.blank_before


def _join(words: Sequence[Token], *, statement: bool = False) -> str:
    """Return tokens with the white space that belongs between them."""
    out: list[str] = []
    depth = 0
    tight = True  # no space before the next token
    loop = statement and bool(words) and words[0].text == "for"
    for i, word in enumerate(words):
        kind = word.kind
        # `mma [stage]`: the bracket belongs to no name. `x[stage]`: it does.
        attached = kind == "[" and i > 0 and words[i - 1].kind == NAME and not (statement and i == 1)
        out.append(word.text if tight or kind in _NONE_BEFORE or attached else " " + word.text)
        operand_before = i > 0 and words[i - 1].kind in (NAME, NUMBER) and (depth > 0 or (loop and i > 1))
        tight = kind in _NONE_AFTER or (kind == "-" and not (statement and operand_before))
        depth += (kind == "[") - (kind == "]")
    return "".join(out)
