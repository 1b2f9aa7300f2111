"""The pipeline, top to bottom: text -> Syntax -> Spec -> Protocol -> Report. Read this first.

A bad spec never raises: whatever is wrong with it is a diagnostic. Only a size given beside it can be refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gemmspec.diagnostics import Diagnostic, Report, Severity
from gemmspec.model.resolve import resolve
from gemmspec.model.spec import Spec
from gemmspec.proof.judge import judge
from gemmspec.protocol import Protocol, derive
from gemmspec.record import record
from gemmspec.rules import CHECKS
from gemmspec.source import SourceFile
from gemmspec.syntax.parse import parse
from gemmspec.targets import Target

NO_SIZES: Mapping[str, int] = MappingProxyType({})


@record
class Checked:
    """What each step made of one source: `spec` and `protocol` are None where an earlier step found errors."""

    report: Report
    spec: Spec | None = None
    protocol: Protocol | None = None


def check(
    source: SourceFile, sizes: Mapping[str, int] = NO_SIZES, target: Target | None = None, *, advice: bool = False
) -> Checked:
    """Say all that is wrong with a spec; with `advice`, what could be better where nothing is wrong.

    `sizes` and `target` take the place of those written in it; `SizeError` is raised for a size that it cannot take.
    """
    # GS0xx: what was written and where; then names, ranges, words.
    tree, diagnostics = parse(source)
    found: list[Diagnostic] = list(diagnostics)
    if diagnostics and not tree.items:
        return Checked(_report(source, found))
    spec, diagnostics = resolve(tree, source, sizes, target)
    found.extend(diagnostics)
    if spec is None:
        return Checked(_report(source, found))

    # GS3xx, GS4xx: what the target has, and what its instructions take.
    errors = [d for d in found if d.severity is Severity.ERROR]
    unread = {source.position(d.span.start)[0] for d in errors}
    meaningful = not errors
    for rule in CHECKS:
        said = [d for d in rule.on_spec(spec) if unread.isdisjoint(_lines(source, d))]
        found.extend(said)
        meaningful = meaningful and not (said and rule.essential)
    if not meaningful:
        return Checked(_report(source, found), spec)

    # GS1xx, GS2xx: the program of every role in every CTA of a cluster; who waits for whom, who reads what.
    protocol = derive(spec)
    verdict = judge(protocol)
    for rule in CHECKS:
        found.extend(rule.on_protocol(protocol))
        found.extend(rule.on_verdict(verdict))

    # GS5xx: asked for apart, since trying what could be left out takes many proofs.
    if advice and all(d.severity is not Severity.ERROR for d in found):
        from gemmspec.rules import ADVICE

        for rule in ADVICE:
            found.extend(rule.on_spec(spec))
            found.extend(rule.on_protocol(protocol))
    proved = len(protocol.barriers) if verdict.ok else None
    return Checked(_report(source, found, proved), spec, protocol)


def _lines(source: SourceFile, d: Diagnostic) -> set[int]:
    """Return the lines that a finding speaks of. What is made of one that could not be read in full is a guess."""
    return {source.position(span.start)[0] for span in (d.span, *(label.span for label in d.labels))}


def _report(source: SourceFile, found: list[Diagnostic], proved: int | None = None) -> Report:
    return Report(source, tuple(sorted(found, key=lambda d: (d.span, d.code))), proved)
