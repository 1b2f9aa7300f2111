"""Given reports, return JSON for tools, in the schema that docs/report.schema.json states.

`version` grows when a field changes its meaning or goes; new fields may come without that.
The only importer of pydantic, and imported only when JSON is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gemmspec.diagnostics import Diagnostic, Report, Severity
from gemmspec.source import SourceFile, Span


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class JsonPosition(_Model):
    """A place between two characters."""

    offset: int = Field(ge=0, description="characters (code points) before it in the file")
    line: int = Field(ge=1, description="1-based")
    column: int = Field(ge=1, description="1-based, in characters (code points)")


class JsonSpan(_Model):
    """A half-open range of characters; empty for a place where something is missing."""

    start: JsonPosition
    end: JsonPosition


class JsonLabel(_Model):
    """A secondary place with its part in the finding."""

    span: JsonSpan
    text: str


class JsonEdit(_Model):
    """Replace the characters of `span` by `text`."""

    span: JsonSpan
    text: str


class JsonFix(_Model):
    """Edits that mend the finding when all of them are made."""

    title: str
    safe: bool = Field(description="whether the meaning of correct parts stays as it is")
    edits: list[JsonEdit]


class JsonDiagnostic(_Model):
    """One finding."""

    code: str = Field(pattern=r"^GS\d{3}$")
    name: str = Field(description="the rule's name; `gemmspec explain` takes it or the code")
    severity: Severity
    message: str
    span: JsonSpan
    label: str = Field(description="a few words on the span; may be empty")
    labels: list[JsonLabel]
    notes: list[str]
    helps: list[str]
    fix: JsonFix | None


class JsonFile(_Model):
    """One file that was checked, with its findings in the order of the text."""

    path: str
    diagnostics: list[JsonDiagnostic]


class JsonReport(_Model):
    """All that one run of `gemmspec lint --format json` says."""

    version: Literal[1] = 1
    files: list[JsonFile]
    errors: int = Field(ge=0)
    warnings: int = Field(ge=0)
    advice: int = Field(ge=0)


def render(reports: Sequence[Report], names: Mapping[str, str]) -> str:
    """Return the reports as indented JSON that ends in a newline; `names` gives the rule's name of each code."""
    return model(reports, names).model_dump_json(indent=2) + "\n"


def schema() -> dict[str, Any]:
    """Return the JSON Schema of what `render` gives."""
    return JsonReport.model_json_schema(mode="serialization")


def model(reports: Sequence[Report], names: Mapping[str, str]) -> JsonReport:
    """Return the reports as the schema's models."""
    severities = [d.severity for report in reports for d in report.diagnostics]
    return JsonReport(
        files=[
            JsonFile(path=r.source.name, diagnostics=[_diagnostic(d, r.source, names) for d in r.diagnostics])
            for r in reports
        ],
        errors=severities.count(Severity.ERROR),
        warnings=severities.count(Severity.WARNING),
        advice=severities.count(Severity.ADVICE),
    )


def _diagnostic(d: Diagnostic, source: SourceFile, names: Mapping[str, str]) -> JsonDiagnostic:
    fix = d.fix and JsonFix(
        title=d.fix.title,
        safe=d.fix.safe,
        edits=[JsonEdit(span=_span(e.span, source), text=e.text) for e in d.fix.edits],
    )
    return JsonDiagnostic(
        code=d.code,
        name=names[d.code],
        severity=d.severity,
        message=d.message,
        span=_span(d.span, source),
        label=d.label,
        labels=[JsonLabel(span=_span(label.span, source), text=label.text) for label in d.labels],
        notes=list(d.notes),
        helps=list(d.helps),
        fix=fix,
    )


def _span(span: Span, source: SourceFile) -> JsonSpan:
    return JsonSpan(start=_position(span.start, source), end=_position(span.end, source))


def _position(offset: int, source: SourceFile) -> JsonPosition:
    line, column = source.position(offset)
    return JsonPosition(offset=offset, line=line, column=column)
