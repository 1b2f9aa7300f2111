"""What gemmspec says about a spec: plain frozen data, rendered by `gemmspec.report`."""

from __future__ import annotations

from enum import Enum

from gemmspec.record import record
from gemmspec.source import SourceFile, Span


class SizeError(ValueError):
    """A size that was given beside the spec, and that the spec cannot take: the caller's mistake, not the spec's."""


class Severity(Enum):
    """ERROR blocks code generation. WARNING and ADVICE do not."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


@record
class Label:
    """A secondary place with a few words on its part in the finding."""

    span: Span
    text: str


@record
class Edit:
    """Replace the characters of `span` by `text`. An empty span inserts; an empty text deletes."""

    span: Span
    text: str


@record
class Fix:
    """Edits that mend a finding together. `safe`: the meaning of correct parts stays as it is."""

    title: str
    edits: tuple[Edit, ...]
    safe: bool = True


@record
class Diagnostic:
    """One defect: a message that stands alone, the smallest wrong text, and what to do.

    `message`: one line, lowercase, names in backticks, both numbers, no final period, never the fix.
    `label`: a few words under the primary span. `notes`: facts. `helps`: edits in words.
    """

    code: str
    severity: Severity
    message: str
    span: Span
    label: str = ""
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()
    fix: Fix | None = None


@record
class Report:
    """All that was found in one source, in the order of the text."""

    source: SourceFile
    diagnostics: tuple[Diagnostic, ...] = ()
    proved: int | None = None
    """How many barriers the pipeline has that was proved; None where the proof found faults, or did not come to run."""

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that block code generation."""
        return tuple(d for d in self.diagnostics if d.severity is Severity.ERROR)

    @property
    def ok(self) -> bool:
        """Whether code may be generated."""
        return not self.errors
