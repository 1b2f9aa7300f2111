"""Given reports, return a SARIF 2.1.0 log, which code scanning services and editors read.

Built as plain data: the part of the format that a linter needs is small, and every SARIF library costs more to import
than all of gemmspec. Columns and offsets are in UTF-16 code units, as most viewers count.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gemmspec.diagnostics import Diagnostic, Fix, Report, Severity
from gemmspec.rules.rule import Rule
from gemmspec.source import SourceFile, Span

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# The number grows when what is hashed changes, so that a service does not take old findings for new ones unnoticed.
FINGERPRINT = "gemmspec/v1"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "note"}

Json = dict[str, Any]


def render(reports: Sequence[Report], rules: Sequence[Rule], version: str) -> str:
    """Return the log as indented JSON that ends in a newline, with the pages of the rules that are broken."""
    return json.dumps(log(reports, rules, version), indent=2, ensure_ascii=False) + "\n"


def log(reports: Sequence[Report], rules: Sequence[Rule], version: str) -> Json:
    """Return the log as plain data."""
    found = {d.code for report in reports for d in report.diagnostics}
    broken = [rule for rule in rules if rule.code in found]
    places = {rule.code: i for i, rule in enumerate(broken)}
    driver = {"name": "gemmspec", "version": version, "rules": [_rule(rule) for rule in broken]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "utf16CodeUnits",
        "invocations": [{"executionSuccessful": True}],
        "artifacts": [{"location": {"uri": uri(r.source.name)}, "encoding": "UTF-8"} for r in reports],
        "results": [result for i, r in enumerate(reports) for result in _results(r, i, places)],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def fingerprint(d: Diagnostic, source: SourceFile) -> str:
    """Return what identifies a finding when lines move: rule, message less its numbers, marked words, kernel."""
    words = " ".join(source.snippet(d.span).split())
    said = re.sub(r"\d+", "#", d.message)
    kernel = re.search(r"^[ \t]*kernel[ \t]+(\w+)", source.text, re.MULTILINE)
    parts = (d.code, said, words, kernel[1] if kernel else Path(source.name).name)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def uri(name: str) -> str:
    """Return a file's name as a URI: relative as long as the name is."""
    path = Path(name)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _rule(rule: Rule) -> Json:
    summary = rule.summary
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.name},
        "fullDescription": {"text": summary},
        "help": {"text": rule.page, "markdown": f"# {rule.code} {rule.name}\n\n{rule.page}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.subject]},
    }


def _results(report: Report, artifact: int, places: Mapping[str, int]) -> list[Json]:
    source = report.source
    # Findings that are alike in all that is hashed are told apart by their order.
    seen: dict[str, int] = {}
    out: list[Json] = []
    for d in report.diagnostics:
        mark = fingerprint(d, source)
        seen[mark] = seen.get(mark, 0) + 1
        result: Json = {
            "ruleId": d.code,
            "ruleIndex": places[d.code],
            "level": _LEVELS[d.severity],
            "message": {"text": "\n".join(_words(d))},
            "locations": [_location(source, artifact, d.span, d.label)],
            "partialFingerprints": {FINGERPRINT: f"{mark}:{seen[mark]}"},
        }
        if d.labels:
            related = [_location(source, artifact, label.span, label.text) for label in d.labels]
            result["relatedLocations"] = [{"id": i, **where} for i, where in enumerate(related, start=1)]
        if d.fix is not None:
            result["fixes"] = [_fix(source, artifact, d.fix)]
            result["properties"] = {"safeFix": d.fix.safe}
        out.append(result)
    return out


def _words(d: Diagnostic) -> list[str]:
    return [d.message, *(f"note: {note}" for note in d.notes), *(f"help: {text}" for text in d.helps)]


def _location(source: SourceFile, artifact: int, span: Span, text: str) -> Json:
    region = _region(source, span)
    region["snippet"] = {"text": source.snippet(span)}
    where: Json = {"physicalLocation": {"artifactLocation": _artifact(source, artifact), "region": region}}
    if text:
        where["message"] = {"text": text}
    return where


def _fix(source: SourceFile, artifact: int, fix: Fix) -> Json:
    replacements = [
        {"deletedRegion": _region(source, edit.span), "insertedContent": {"text": edit.text}} for edit in fix.edits
    ]
    change = {"artifactLocation": _artifact(source, artifact), "replacements": replacements}
    return {"description": {"text": fix.title}, "artifactChanges": [change]}


def _artifact(source: SourceFile, index: int) -> Json:
    return {"uri": uri(source.name), "index": index}


def _region(source: SourceFile, span: Span) -> Json:
    size = len(source.text)
    start, end = min(span.start, size), min(span.end, size)
    (first, from_column), (last, to_column) = _position(source, start), _position(source, end)
    before, within = _units(source.text[:start]), _units(source.text[start:end])
    return {
        "startLine": first,
        "startColumn": from_column,
        "endLine": last,
        "endColumn": to_column,
        "charOffset": before,
        "charLength": within,
    }


def _position(source: SourceFile, offset: int) -> tuple[int, int]:
    line, column = source.position(offset)
    return line, _units(source.text[offset - column + 1 : offset]) + 1


def _units(text: str) -> int:
    """Return the length in UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
