"""Given a source line, say how a terminal shows it: tabs, wide and unprintable characters, lines that are too long."""

from __future__ import annotations

from collections.abc import Sequence

from gemmspec.record import record

TAB = 4
# Longer lines are cut around the marked characters.
WIDTH = 140
_LEAD = 40
# No more of a line than this many characters around its first mark is looked at.
_NEAR = 4 * WIDTH
_ELLIPSIS = "..."


@record
class Window:
    """The part of a line that is shown, and where each of its characters stands."""

    text: str
    _edges: tuple[int, ...]  # display column of each character of the line, and of its end
    _low: int
    _high: int
    _shift: int
    _base: int = 0  # first character of the line that was looked at

    def columns(self, start: int, end: int) -> tuple[int, int]:
        """Return the display columns of characters start..end, at least one wide and inside the window."""
        low = min(max(self._edge(start), self._low), self._high)
        high = min(max(self._edge(end), low + 1), max(self._high, low + 1))
        return low + self._shift, high + self._shift

    def _edge(self, index: int) -> int:
        index = max(0, index - self._base)
        beyond = max(0, index - (len(self._edges) - 1))
        return self._edges[index - beyond] + beyond


def window(line: str, marks: Sequence[tuple[int, int]]) -> Window:
    """Return what to show of a line so that its first mark is in view."""
    base = max(0, marks[0][0] - _NEAR // 2) if len(line) > _NEAR else 0
    whole, line = line, line[base : base + _NEAR]
    marks = [(start - base, end - base) for start, end in marks]
    cells = [_cell(c) for c in line] if not (line.isascii() and line.isprintable()) else list(line)
    edges = [0]
    for cell in cells:
        edges.append(edges[-1] + _width(cell))
    total = edges[-1]
    if total <= WIDTH and len(line) == len(whole):
        return Window("".join(cells), tuple(edges), 0, total, 0)
    start, end = marks[0]
    focus_start, focus_end = edges[min(start, len(line))], edges[min(end, len(line))]
    first = 0 if focus_end <= WIDTH else next(i for i, e in enumerate(edges) if e >= max(0, focus_start - _LEAD))
    last = max(i for i, e in enumerate(edges) if e - edges[first] <= WIDTH)
    before = _ELLIPSIS if first or base else ""
    after = _ELLIPSIS if base + last < len(whole) else ""
    text = before + "".join(cells[first:last]) + after
    return Window(text, tuple(edges), edges[first], edges[last], len(before) - edges[first], base)


def _cell(char: str) -> str:
    """Return the printable stand-in of a character."""
    if char == "\t":
        return " " * TAB
    if char.isprintable():
        return char
    code = ord(char)
    # Control pictures block for C0; anything else (bidirectional overrides, C1) must not reach a terminal.
    if code < 0x20:
        return chr(0x2400 + code)
    return "\N{REPLACEMENT CHARACTER}"


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
