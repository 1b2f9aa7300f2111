"""Makes the edits that findings offer. Only safe ones are made unasked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import click

from gemmspec.cli.output import complain
from gemmspec.diagnostics import Diagnostic, Fix
from gemmspec.files import STDIN, atomic_write, shown_name
from gemmspec.source import SourceFile

# A fix may bring a finding to light that has a fix of its own; more rounds than this would go in circles.
_ROUNDS = 10


def mend(source: SourceFile, check: Callable[[SourceFile], Iterable[Diagnostic]]) -> SourceFile:
    """Make the safe fixes of all that `check` finds in a file, write it, and return what it is now."""
    if source.name == shown_name(STDIN):
        raise click.UsageError("--fix needs a file that it can write")
    text, made = source.text, 0
    for _ in range(_ROUNDS):
        fixes = [d.fix for d in check(SourceFile(source.name, text)) if d.fix is not None and d.fix.safe]
        if not fixes:
            break
        text = apply(text, fixes)
        made += len(fixes)
    if text != source.text:
        atomic_write(source.name, text)
        complain(f"{source.name}: made {made} fix{'es' if made > 1 else ''}")
    return SourceFile(source.name, text)


def apply(text: str, fixes: Sequence[Fix]) -> str:
    """Return the text with the fixes made, less those that touch what an earlier one has changed."""
    taken: list[tuple[int, int, str]] = []
    for fix in fixes:
        edits = [(e.span.start, e.span.end, e.text) for e in fix.edits]
        if all(end <= low or high <= start for start, end, _ in edits for low, high, _ in taken):
            taken += edits
    for start, end, new in sorted(taken, reverse=True):
        text = text[:start] + new + text[end:]
    return text
