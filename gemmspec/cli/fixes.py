"""Makes the edits that findings offer, in rounds, since one edit may bring to light what another one mends."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gemmspec.diagnostics import Fix, Report
from gemmspec.source import SourceFile
from gemmspec.syntax.format import format_source
from gemmspec.syntax.parse import parse

# Enough for one finding behind another in every family; texts that come again end it before.
_ROUNDS = 20
_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}


@dataclass(frozen=True, slots=True)
class Mended:
    """What became of a source: its report as it is now, and how many fixes were made."""

    report: Report
    made: int


def mend(source: SourceFile, check: Callable[[SourceFile], Report], *, unsafe: bool = False) -> Mended:
    """Make the fixes of all that `check` finds, over and over, until none is left that can be made."""
    report, made = check(source), 0
    seen = {source.text}
    for _ in range(_ROUNDS):
        fixes = [d.fix for d in report.diagnostics if d.fix is not None and (d.fix.safe or unsafe)]
        if not fixes:
            break
        better = _round(report, fixes, check)
        if better is None or better[0].source.text in seen:
            break
        report, made = better[0], made + better[1]
        seen.add(report.source.text)
    return Mended(report, made)


def _round(report: Report, fixes: Sequence[Fix], check: Callable[[SourceFile], Report]) -> tuple[Report, int] | None:
    """Make all fixes that do not touch each other; if together they do harm, the first alone."""
    source = report.source
    for batch in (chosen(fixes), fixes[:1]):
        text = _laid_out(source, apply(source.text, batch))
        if text == source.text:
            continue
        after = check(SourceFile(source.name, text))
        if len(batch) == 1 or len(after.errors) <= len(report.errors):
            return after, len(batch)
    return None


def _laid_out(source: SourceFile, text: str) -> str:
    """Return what was made of a source in the one layout, if the source was in it."""
    formatted = format_source(SourceFile(source.name, text))
    if formatted == text or format_source(source) != source.text:
        return text
    if not parse(source)[1]:
        return formatted
    # What could not be read had no layout to judge by: the paragraphs that no edit touched have to do.
    touched = {_paragraph(text, line) for line in _changed(source.text, text)}
    return formatted if {_paragraph(text, line) for line in _changed(formatted, text)} <= touched else text


def _changed(old: str, new: str) -> Iterator[int]:
    """Yield the lines of `new` that `old` has not, and those beside which it has more."""
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    for tag, _, _, first, last in matcher.get_opcodes():
        if tag != "equal":
            yield from range(first, max(last, first + 1))


def _paragraph(text: str, line: int) -> int:
    """Return how many blank lines stand ahead of a line."""
    return sum(not words.strip() for words in text.splitlines()[:line])


def chosen(fixes: Sequence[Fix]) -> list[Fix]:
    """Return the fixes that can be made together: each one less those that touch what an earlier one changes."""
    taken: list[tuple[int, int]] = []
    out: list[Fix] = []
    for fix in fixes:
        edits = [(e.span.start, e.span.end) for e in fix.edits]
        if not any(_touch(edit, other) for edit in edits for other in taken):
            taken += edits
            out.append(fix)
    return out


def _touch(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Say whether two edits overlap, or begin at one place (whose order would be open)."""
    return one[0] == other[0] or (one[0] < other[1] and other[0] < one[1])


def apply(text: str, fixes: Sequence[Fix]) -> str:
    """Return the text with the fixes made, less those that touch what an earlier one has changed."""
    edits = [(e.span.start, e.span.end, e.text) for fix in chosen(fixes) for e in fix.edits]
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def difference(name: str, old: str, new: str, colour: bool) -> str:
    """Return a unified diff; nothing where the texts are the same."""
    return "".join(_difference(name, old, new, colour))


def _difference(name: str, old: str, new: str, colour: bool) -> Iterator[str]:
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    for line in difflib.unified_diff(before, after, name, name):
        ended = line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
        code = _COLOURS.get(line[0]) if colour else None
        yield f"{code}{ended[:-1]}\x1b[0m\n" if code else ended
