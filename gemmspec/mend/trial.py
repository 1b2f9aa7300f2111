"""Tries edits on a text, and keeps those after which a finding is gone and none has come."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from gemmspec.diagnostics import Diagnostic, Edit, Fix, Report
from gemmspec.driver import Checked
from gemmspec.mend.candidates import Candidate, candidates
from gemmspec.source import SourceFile, Span
from gemmspec.syntax.format import format_source

# Each trial is a proof. A spec that has more wrong than this covers needs a person.
MOST_TRIALS = 24

Check = Callable[[SourceFile], Checked]


def with_fixes(checked: Checked, check: Check) -> Report:
    """Return the report of a spec with fixes for findings of the proof that have none, where a tried one is known."""
    report = checked.report
    if checked.protocol is None or not any(map(_may_have_one, report.diagnostics)):
        return report
    found = list(report.diagnostics)
    trials = 0
    for candidate in candidates(report.source, checked.protocol, check):
        if trials == MOST_TRIALS or not any(map(_may_have_one, found)):
            break
        trials += 1
        after = check(SourceFile(report.source.name, candidate.text)).report.diagnostics
        if _codes(after) - _codes(found):
            continue
        left = {(d.code, d.message) for d in after}
        fewer = _codes(found) - _codes(after)
        for i, d in enumerate(found):
            if _may_have_one(d) and fewer[d.code] and (d.code, d.message) not in left:
                found[i] = _with_fix(d, report.source, candidate)
    return replace(report, diagnostics=tuple(found))


def edits_between(old: str, new: str) -> tuple[Edit, ...]:
    """Return the edits of whole lines that make one text of another."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    starts = [0]
    for line in before:
        starts.append(starts[-1] + len(line))
    return tuple(
        Edit(Span(starts[i], starts[j]), "".join(after[low:high]))
        for tag, i, j, low, high in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        if tag != "equal"
    )


def _may_have_one(d: Diagnostic) -> bool:
    return d.fix is None and d.code.startswith(("GS1", "GS2"))


def _codes(found: Iterable[Diagnostic]) -> Counter[str]:
    return Counter(d.code for d in found)


def _with_fix(d: Diagnostic, source: SourceFile, candidate: Candidate) -> Diagnostic:
    new = candidate.text
    if format_source(source) == source.text:
        new = format_source(SourceFile(source.name, new))
    fix = Fix(candidate.title, edits_between(source.text, new), safe=False)
    return replace(d, fix=fix, helps=(candidate.title,))
