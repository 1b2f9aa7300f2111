"""SARIF and GitHub annotations: the form that readers rely on, places in UTF-16, fingerprints that stay.

What stands here restates, with no more allowed, the part of the published schema that gemmspec writes. The schema
itself is not kept: `SARIF_SCHEMA=sarif-schema-2.1.0.json pytest tests/test_sarif.py` validates against it as well.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gemmspec.diagnostics import Diagnostic, Edit, Fix, Label, Report, Severity
from gemmspec.driver import check
from gemmspec.report import github, sarif
from gemmspec.rules import RULES
from gemmspec.source import SourceFile, Span

ROOT = Path(__file__).parent.parent
NAMES = {rule.code: rule.name for rule in RULES}


def thing(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


def many(items: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least}


TEXT = thing("text", text={"type": "string"})
HELP = thing("text markdown", text={"type": "string"}, markdown={"type": "string"})
FROM_0, FROM_1 = {"type": "integer", "minimum": 0}, {"type": "integer", "minimum": 1}
LEVEL = {"enum": ["error", "warning", "note"]}
ARTIFACT = thing("uri", uri={"type": "string", "format": "uri-reference"}, index=FROM_0)
REGION = thing(
    "startLine startColumn endLine endColumn charOffset charLength",
    startLine=FROM_1, startColumn=FROM_1, endLine=FROM_1, endColumn=FROM_1,
    charOffset=FROM_0, charLength=FROM_0, snippet=TEXT,
)  # fmt: skip
PHYSICAL = thing("artifactLocation region", artifactLocation=ARTIFACT, region=REGION)
LOCATION = thing("physicalLocation", id=FROM_0, physicalLocation=PHYSICAL, message=TEXT)
REPLACEMENT = thing("deletedRegion", deletedRegion=REGION, insertedContent=TEXT)
CHANGE = thing("artifactLocation replacements", artifactLocation=ARTIFACT, replacements=many(REPLACEMENT, 1))
RESULT = thing(
    "ruleId ruleIndex level message locations partialFingerprints",
    ruleId={"type": "string"}, ruleIndex=FROM_0, level=LEVEL, message=TEXT,
    locations=many(LOCATION, 1), relatedLocations=many(LOCATION, 1),
    partialFingerprints={"type": "object", "additionalProperties": {"type": "string"}},
    fixes=many(thing("artifactChanges", description=TEXT, artifactChanges=many(CHANGE, 1)), 1),
    properties={"type": "object"},
)  # fmt: skip
RULE = thing(
    "id",
    id={"type": "string"}, name={"type": "string"}, shortDescription=TEXT, fullDescription=TEXT, help=HELP,
    defaultConfiguration=thing("level", level=LEVEL),
    properties=thing("tags", tags={"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
)  # fmt: skip
DRIVER = thing("name", name={"type": "string"}, version={"type": "string"}, rules=many(RULE))
RUN = thing(
    "tool results",
    tool=thing("driver", driver=DRIVER), columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    invocations=many(thing("executionSuccessful", executionSuccessful={"type": "boolean"})),
    artifacts=many(thing("location", location=ARTIFACT, encoding={"type": "string"})), results=many(RESULT),
)  # fmt: skip
LOG = thing("version runs", **{"$schema": {"type": "string"}}, version={"enum": ["2.1.0"]}, runs=many(RUN))


def one(d: Diagnostic, text: str, name: str = "a.gemmspec") -> dict[str, Any]:
    """The result of a single finding."""
    return sarif.log([Report(SourceFile(name, text), (d,))], RULES, "1")["runs"][0]["results"][0]


def test_reports_of_all_rules_have_the_form() -> None:
    reports = [check(SourceFile(f"{r.code}.gemmspec", r.bad), advice=True).report for r in RULES if r.by_spec]
    log = json.loads(sarif.render(reports, RULES, "1.0"))
    jsonschema.validate(log, LOG)
    published = os.environ.get("SARIF_SCHEMA")
    if published:
        jsonschema.validate(log, json.loads(Path(published).read_text(encoding="utf-8")))
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    broken = {r["ruleId"] for r in run["results"]}
    assert [r["id"] for r in rules] == [rule.code for rule in RULES if rule.code in broken]
    assert all(rules[r["ruleIndex"]]["id"] == r["ruleId"] for r in run["results"])
    assert {r["ruleId"] for r in run["results"]} >= {r.code for r in RULES if r.by_spec}
    assert all("## What it checks" in r["help"]["markdown"] for r in rules)


def test_every_fix_in_the_log_gives_the_text_that_lint_writes() -> None:
    rule = next(r for r in RULES if r.code == "GS112")
    report = check(SourceFile("a", rule.bad)).report
    result = one(report.diagnostics[0], rule.bad)
    (replacement,) = result["fixes"][0]["artifactChanges"][0]["replacements"]
    region = replacement["deletedRegion"]
    end = region["charOffset"] + region["charLength"]
    mended = rule.bad[: region["charOffset"]] + replacement["insertedContent"]["text"] + rule.bad[end:]
    assert check(SourceFile("a", mended)).report.diagnostics == ()


def test_columns_and_offsets_count_utf_16_code_units() -> None:
    text = "# \N{GRINNING FACE} é\n\N{GRINNING FACE} stages\n"
    start = text.index("stages")
    d = Diagnostic("GS001", Severity.ERROR, "wrong", Span(start, start + 6), labels=(Label(Span(2, 3), "face"),))
    result = one(d, text)
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region["snippet"]["text"] == "stages"
    assert (region["startLine"], region["startColumn"], region["endLine"], region["endColumn"]) == (2, 4, 2, 10)
    units = text.encode("utf-16-le")
    low, high = 2 * region["charOffset"], 2 * (region["charOffset"] + region["charLength"])
    assert units[low:high].decode("utf-16-le") == "stages"
    face = result["relatedLocations"][0]["physicalLocation"]["region"]
    assert (face["startColumn"], face["endColumn"], face["charLength"]) == (3, 5, 2)


def test_fingerprints_survive_what_moves_a_finding() -> None:
    rule = next(r for r in RULES if r.code == "GS112")

    def marks(text: str) -> list[str]:
        source = SourceFile("a", text)
        return [sarif.fingerprint(d, source) for d in check(source).report.diagnostics]

    before = marks(rule.bad)
    assert before and marks("# a remark\n\n" + rule.bad.replace("barrier ", "  barrier  ")) == before
    assert marks(rule.bad.replace("kernel demo", "kernel other")) != before


def test_findings_that_are_alike_have_fingerprints_of_their_own() -> None:
    d = Diagnostic("GS001", Severity.ERROR, "wrong", Span(0, 1))
    again = Diagnostic("GS001", Severity.ERROR, "wrong", Span(2, 3))
    results = sarif.log([Report(SourceFile("a", "x\nx\n"), (d, again))], RULES, "1")["runs"][0]["results"]
    marks = [r["partialFingerprints"][sarif.FINGERPRINT] for r in results]
    assert marks[0] != marks[1] and marks[0].split(":")[0] == marks[1].split(":")[0]


@pytest.mark.parametrize(
    ("name", "uri"),
    [("specs/v9.gemmspec", "specs/v9.gemmspec"), ("a b#.gemmspec", "a%20b%23.gemmspec"), ("/x y", "file:///x%20y")],
)
def test_names_of_files_are_uris(name: str, uri: str) -> None:
    assert sarif.uri(name) == uri


def test_an_annotation_escapes_what_ends_its_parts() -> None:
    fix = Fix("", (Edit(Span(0, 1), ""),))
    d = Diagnostic("GS112", Severity.ERROR, "50 % of `a:b`, `c`", Span(2, 5), notes=("x\ny",), fix=fix)
    text = github.render([Report(SourceFile("a,b:c.gemmspec", "a\nbcd\n"), (d,))], NAMES)
    assert text == (
        "::error title=GS112 arrival-count-mismatch,file=a%2Cb%3Ac.gemmspec,line=2,col=1,endLine=2,endColumn=4"
        "::50 %25 of `a:b`, `c`%0Anote: x%0Ay\n1 error in 1 file\n"
    )


def test_an_annotation_of_several_lines_has_no_columns() -> None:
    d = Diagnostic("GS507", Severity.ADVICE, "m", Span(0, 3))
    line = github.render([Report(SourceFile("a", "b\nc\n"), (d,))], NAMES).splitlines()[0]
    assert line == "::notice title=GS507 ragged-tiles,file=a,line=1,endLine=2::m"


def test_what_lint_prints_for_github_is_one_command_a_finding() -> None:
    rule = next(r for r in RULES if r.code == "GS112")
    report = check(SourceFile("a", rule.bad)).report
    lines = github.render([report], NAMES).splitlines()
    assert len(lines) == len(report.diagnostics) + 1
    assert all(re.match(r"::(error|warning|notice) title=GS\d{3} [a-z-]+,file=a,line=\d+", line) for line in lines[:-1])
