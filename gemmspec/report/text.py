"""Given reports, return the text that a person reads: source lines with marks under them, notes, helps, a count.

The look is rustc's. Does not print, and does not decide on colours: the command line does. Imports no terminal
library, because lint's whole process has a quarter of a second.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from gemmspec.diagnostics import Diagnostic, Report, Severity
from gemmspec.record import record
from gemmspec.report.lines import Window, window
from gemmspec.source import SourceFile, Span

# SGR codes (ECMA-48) of what is coloured.
_COLOURS = {
    "error": "1;31",
    "warning": "1;33",
    "advice": "1;36",
    "bold": "1",
    "frame": "1;34",
    "plain": "",
}


def render(reports: Sequence[Report], *, colour: bool = False) -> str:
    """Return every finding of every report and a last line that counts them; ends in a newline."""
    parts = [render_diagnostic(d, report.source, colour=colour) for report in reports for d in report.diagnostics]
    parts.append(summary(reports) + "\n")
    return "\n".join(parts)


def summary(reports: Sequence[Report]) -> str:
    """Return `2 errors, 1 warning in 1 file`, or what was proved."""
    files = _count(len(reports), "file")
    found = [d.severity for report in reports for d in report.diagnostics]
    if not found:
        return f"{reports[0].source.name if len(reports) == 1 else files}: {_proved(reports)}"
    words = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "suggestion"}
    counts = [_count(found.count(severity), word) for severity, word in words.items() if severity in found]
    return f"{', '.join(counts)} in {files}"


def _proved(reports: Sequence[Report]) -> str:
    barriers = [report.proved for report in reports if report.proved is not None]
    if len(barriers) < len(reports):
        return "no findings"
    balanced = _count(sum(barriers), "barrier")
    return f"proved for every K and any number of tiles: no deadlock, no race, {balanced} balanced"


def statistics(reports: Sequence[Report], names: Mapping[str, str]) -> str:
    """Return a line for each rule that found something, the most frequent first, and the line that counts all."""
    found = [d for report in reports for d in report.diagnostics]
    counts = Counter(d.code for d in found)
    mendable = Counter(d.code for d in found if d.fix is not None)
    width = max((len(str(n)) for n in counts.values()), default=0)
    lines: list[str] = []
    for code, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        fixes = f" ({mendable[code]} with a fix)" if mendable[code] else ""
        lines.append(f"{n:{width}}  {code}  {names[code]}{fixes}\n")
    return "".join([*lines, summary(reports), "\n"])


def render_diagnostic(diagnostic: Diagnostic, source: SourceFile, *, colour: bool = False) -> str:
    """Return one finding as text that ends in a newline."""
    rows = list(_rows(diagnostic, source))
    return "".join(row.text(colour) + "\n" for row in rows)


def _rows(diagnostic: Diagnostic, source: SourceFile) -> Iterator[_Row]:
    level = diagnostic.severity.value
    lines: dict[int, list[_Mark]] = defaultdict(list)
    spans = [(diagnostic.span, diagnostic.label, True)]
    spans += [(label.span, label.text, False) for label in diagnostic.labels]
    for span, text, primary in spans:
        for number, mark in _marks(source, span, text, primary):
            lines[number].append(mark)

    head = _Row().add(f"{level}[{diagnostic.code}]", level).add(f": {diagnostic.message}", "bold")
    gutter = len(str(max(lines)))
    line, column = source.position(min(diagnostic.span.start, len(source.text)))
    yield head
    yield _Row().add(" " * gutter + "--> ", "frame").add(f"{source.name}:{line}:{column}", "plain")
    yield _Row().add(" " * (gutter + 1) + "|", "frame")
    for number in sorted(lines):
        marks = lines[number]
        shown = window(source.line(number), [(m.start, m.end) for m in sorted(marks, key=lambda m: not m.primary)])
        yield _Row().add(f"{number:>{gutter}} | ", "frame").add(shown.text, "plain")
        for row in _mark_rows(marks, shown, level):
            yield _Row().add(" " * (gutter + 1) + "| ", "frame").join(row)
        if any(m.continues for m in marks):
            yield _Row().add("...", "frame")
    for kind, text in _footers(diagnostic):
        first, *rest = text.splitlines() or [""]
        yield _Row().add(" " * (gutter + 1) + "= ", "frame").add(f"{kind}:", "bold").add(f" {first}", "plain")
        for more in rest:
            yield _Row().add(" " * (gutter + 5 + len(kind)) + more, "plain")


def _footers(diagnostic: Diagnostic) -> Iterator[tuple[str, str]]:
    for note in diagnostic.notes:
        yield "note", note
    helps = list(diagnostic.helps)
    if diagnostic.fix is not None:
        helps = helps or [diagnostic.fix.title]
        helps[-1] += " (fix available)" if diagnostic.fix.safe else " (fix available: --unsafe-fixes)"
    for text in helps:
        yield "help", text


@record
class _Mark:
    """Characters of one line to underline. `continues`: the span goes on below, and lines between are left out."""

    start: int
    end: int
    text: str
    primary: bool
    continues: bool = False


# A mark and the display columns where it begins and ends.
_Placed = tuple[int, int, _Mark]


def _marks(source: SourceFile, span: Span, text: str, primary: bool) -> Iterator[tuple[int, _Mark]]:
    """Yield the one mark of a span, or the marks of its first and last line, with their line numbers."""
    size = len(source.text)
    start, end = min(span.start, size), min(span.end, size)
    end = max(start, start + len(source.text[start:end].rstrip()))
    first, column = source.position(start)
    last, end_column = source.position(end)
    if first == last:
        yield first, _Mark(column - 1, max(end_column - 1, column), text, primary)
        return
    opening = source.line(first)
    yield first, _Mark(column - 1, max(len(opening.rstrip()), column), "", primary, last > first + 1)
    closing = source.line(last)
    yield last, _Mark(len(closing) - len(closing.lstrip()), end_column - 1, text, primary)


def _mark_rows(marks: Sequence[_Mark], shown: Window, level: str) -> Iterator[_Row]:
    """Yield the row of underlines, with the rightmost label beside it, then a row for each other label."""
    placed = [(*shown.columns(m.start, m.end), m) for m in marks]
    # The primary mark is drawn last, so that it shows where marks overlap.
    underlines = _Row()
    for start, end, mark in sorted(placed, key=lambda p: p[2].primary):
        underlines.put(start, ("^" if mark.primary else "-") * (end - start), level if mark.primary else "frame")
    hanging = sorted((p for p in placed if p[2].text), key=lambda p: (p[0], p[1], p[2].primary))
    last = max(end for _, end, _ in placed)
    if hanging and _stands_beside(hanging[-1], placed, last):
        _, end, mark = hanging.pop()
        underlines.put(end + 1, mark.text, level if mark.primary else "frame")
    yield underlines
    if hanging:
        yield _connectors(hanging, level)
    while hanging:
        start, _, mark = hanging.pop()
        yield _connectors(hanging, level).put(start, mark.text, level if mark.primary else "frame")


def _stands_beside(rightmost: _Placed, placed: Sequence[_Placed], last: int) -> bool:
    """Say whether a label can follow the underlines: they end with its own mark, which no primary one hides."""
    _, end, mark = rightmost
    return end == last and (mark.primary or not any(other.primary for _, at, other in placed if at == last))


def _connectors(hanging: Sequence[_Placed], level: str) -> _Row:
    row = _Row()
    for start, _, mark in hanging:
        row.put(start, "|", level if mark.primary else "frame")
    return row


class _Row:
    """A line of output under construction: characters, each with what it is."""

    def __init__(self) -> None:
        self._cells: list[tuple[str, str]] = []

    def add(self, text: str, style: str) -> _Row:
        self._cells.extend((c, style) for c in text)
        return self

    def put(self, column: int, text: str, style: str) -> _Row:
        """Write over whatever stands at a column."""
        end = column + len(text)
        self._cells.extend([(" ", "plain")] * (end - len(self._cells)))
        self._cells[column:end] = [(c, style) for c in text]
        return self

    def join(self, other: _Row) -> _Row:
        self._cells.extend(other._cells)
        return self

    def text(self, colour: bool) -> str:
        if not colour:
            return "".join(c for c, _ in self._cells).rstrip()
        out: list[str] = []
        current = ""
        for char, style in self._cells:
            code = _COLOURS[style]
            if code != current:
                out.append("\x1b[0m" if current else "")
                out.append(f"\x1b[{code}m" if code else "")
                current = code
            out.append(char)
        return "".join(out) + ("\x1b[0m" if current else "")


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
