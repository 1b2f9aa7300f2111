"""What a rule is, and how one is written: a function that yields `Finding`s, under `@spec_rule`, `@protocol_rule`
or `@proof_rule`.

A rule's module is named after its code and name. Beside it stand `<stem>.bad.gemmspec`, the smallest spec that breaks
the rule, and `<stem>.good.gemmspec`, the same spec mended by the smallest edit. The page that users read is the
function's docstring; rules of the syntax family have no function, and their page is `<stem>.md`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gemmspec.diagnostics import Diagnostic, Fix, Label, Severity
from gemmspec.record import record
from gemmspec.source import Span

if TYPE_CHECKING:
    from gemmspec.model.spec import Spec
    from gemmspec.proof.judge import Verdict
    from gemmspec.protocol import Protocol


@record
class Finding:
    """A `Diagnostic` less its code and severity, which the rule adds."""

    span: Span
    message: str
    label: str = ""
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()
    fix: Fix | None = None


SpecCheck = Callable[["Spec"], Iterable[Finding]]
ProtocolCheck = Callable[["Protocol"], Iterable[Finding]]
VerdictCheck = Callable[["Verdict"], Iterable[Finding]]


@record
class Rule:
    """A code, its name, and how it is found: in a `Spec`, in a `Protocol`, or (neither) by the parser and resolver."""

    code: str
    name: str
    severity: Severity
    stem: Path
    """Where the rule's files are, less their suffix."""
    spec_check: SpecCheck | None = None
    protocol_check: ProtocolCheck | None = None
    verdict_check: VerdictCheck | None = None
    by_spec: bool = True
    """Whether a spec can break it; the others guard the generator's own work, and have no examples."""
    essential: bool = False
    """Whether a spec that breaks it has no protocol to speak of, so that nothing more is checked."""

    @property
    def subject(self) -> str:
        """`syntax`, `spec`, `protocol` or `proof`: what the rule is about."""
        if self.spec_check is not None:
            return "spec"
        if self.verdict_check is not None:
            return "proof"
        return "protocol" if self.protocol_check is not None else "syntax"

    @property
    def page(self) -> str:
        """What users read about the rule, in Markdown."""
        check = self.spec_check or self.protocol_check or self.verdict_check
        if check is not None:
            return inspect.cleandoc(check.__doc__ or "") + "\n"
        return self._read(".md")

    @property
    def summary(self) -> str:
        """The first sentence of what it checks."""
        paragraph = self.page.partition("\n\n")[0].partition("\n")[2]
        # Of a list, its first item.
        lines = paragraph.strip().removeprefix("- ").partition("\n- ")[0].splitlines()
        paragraph = " ".join(line.strip() for line in lines)
        end = paragraph.find(". ")
        return paragraph if end < 0 else paragraph[: end + 1]

    @property
    def bad(self) -> str:
        """The smallest spec that breaks the rule, less the `#~` comments that say what tests expect of it."""
        lines = self._read(".bad.gemmspec").splitlines(keepends=True)
        return "".join(line for line in lines if not line.lstrip().startswith("#~"))

    @property
    def good(self) -> str:
        """The same spec, mended by the smallest edit."""
        return self._read(".good.gemmspec")

    def on_spec(self, spec: Spec) -> Iterator[Diagnostic]:
        """Yield what the rule finds in a spec: nothing, if it is about something else."""
        if self.spec_check is not None:
            yield from map(self._diagnostic, self.spec_check(spec))

    def on_protocol(self, protocol: Protocol) -> Iterator[Diagnostic]:
        """Yield what the rule finds in a protocol: nothing, if it is about something else."""
        if self.protocol_check is not None:
            yield from map(self._diagnostic, self.protocol_check(protocol))

    def on_verdict(self, verdict: Verdict) -> Iterator[Diagnostic]:
        """Yield what the rule tells of a verdict of the proof: nothing, if it is about something else."""
        if self.verdict_check is not None:
            yield from map(self._diagnostic, self.verdict_check(verdict))

    def _diagnostic(self, f: Finding) -> Diagnostic:
        return Diagnostic(self.code, self.severity, f.message, f.span, f.label, f.labels, f.notes, f.helps, f.fix)

    def _read(self, suffix: str) -> str:
        return self.stem.with_name(self.stem.name + suffix).read_text(encoding="utf-8")


def spec_rule(
    code: str, name: str, severity: Severity = Severity.ERROR, *, essential: bool = False
) -> Callable[[SpecCheck], Rule]:
    """Make a rule of a function that reads a `Spec`. Its docstring is the page."""
    return lambda check: Rule(code, name, severity, _stem(check), spec_check=check, essential=essential)


def protocol_rule(code: str, name: str, severity: Severity = Severity.ERROR) -> Callable[[ProtocolCheck], Rule]:
    """Make a rule of a function that reads a `Protocol`. Its docstring is the page."""
    return lambda check: Rule(code, name, severity, _stem(check), protocol_check=check)


def proof_rule(
    code: str, name: str, severity: Severity = Severity.ERROR, *, by_spec: bool = True
) -> Callable[[VerdictCheck], Rule]:
    """Make a rule of a function that reads the proof's `Verdict`. Its docstring is the page."""
    return lambda check: Rule(code, name, severity, _stem(check), verdict_check=check, by_spec=by_spec)


def syntax_rule(folder: Path, code: str, name: str) -> Rule:
    """Return the rule whose findings the parser or the resolver makes, with its files in `folder`."""
    return Rule(code, name, Severity.ERROR, folder / f"{code.lower()}_{name.replace('-', '_')}")


def _stem(check: Callable[..., object]) -> Path:
    return Path(check.__code__.co_filename).with_suffix("")
