"""Given reports, return workflow commands: GitHub shows them beside the changed lines of a pull request.

docs.github.com, Workflow commands for GitHub Actions: what a command's data and properties must escape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gemmspec.diagnostics import Diagnostic, Report, Severity
from gemmspec.report.text import summary
from gemmspec.source import SourceFile

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "notice"}


def render(reports: Sequence[Report], names: Mapping[str, str]) -> str:
    """Return a command for each finding, and a last line that counts them; `names` gives the rules' names."""
    lines = [_command(d, r.source, names) for r in reports for d in r.diagnostics]
    return "".join(line + "\n" for line in [*lines, summary(reports)])


def _command(d: Diagnostic, source: SourceFile, names: Mapping[str, str]) -> str:
    properties = ",".join(f"{key}={_property(str(value))}" for key, value in _properties(d, source, names))
    words = [d.message, *(f"note: {note}" for note in d.notes), *(f"help: {text}" for text in d.helps)]
    return f"::{_COMMANDS[d.severity]} {properties}::{_data(chr(10).join(words))}"


def _properties(d: Diagnostic, source: SourceFile, names: Mapping[str, str]) -> Iterator[tuple[str, str | int]]:
    size = len(source.text)
    first, column = source.position(min(d.span.start, size))
    last, end_column = source.position(min(d.span.end, size))
    yield "title", f"{d.code} {names[d.code]}"
    yield "file", source.name
    yield "line", first
    # Columns are taken only where an annotation has one line.
    if first == last:
        yield "col", column
    yield "endLine", last
    if first == last:
        yield "endColumn", end_column


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
