"""How findings look, and the JSON that tools read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from gemmspec.diagnostics import Diagnostic, Edit, Fix, Label, Report, Severity
from gemmspec.driver import check
from gemmspec.report import json as report_json
from gemmspec.report.lines import WIDTH
from gemmspec.report.text import render, render_diagnostic, summary
from gemmspec.rules import RULES
from gemmspec.source import SourceFile, Span

ROOT = Path(__file__).parent.parent
NAMES = {rule.code: rule.name for rule in RULES}


def span(text: str, words: str, start: int = 0) -> Span:
    at = text.index(words, start)
    return Span(at, at + len(words))


def rendered(text: str, words: str, *labels: Label, label: str = "", message: str = "it is wrong") -> list[str]:
    found = Diagnostic("GS112", Severity.ERROR, message, span(text, words), label, labels)
    head, *lines = render_diagnostic(found, SourceFile("a.gemmspec", text)).splitlines()
    assert head == f"error[GS112]: {message}"
    return lines


def test_the_example_of_the_design_page() -> None:
    text = (ROOT / "specs/v9.gemmspec").read_text(encoding="utf-8").replace("arrivals 256", "arrivals 128")
    finding = Diagnostic(
        "GS112",
        Severity.ERROR,
        "barrier `ld2mma` is declared with 128 arrivals, but 256 complete its phase",
        span(text, "arrivals 128"),
        "the barrier opens when half have arrived",
        (Label(span(text, "on warpgroups 0..1"), "all 128 threads of this warpgroup arrive, in each of 2 CTAs"),),
        ("consumer 0 may then overwrite TMEM columns 0..255 while writeback 0 of CTA 1 still reads them",),
        ("write `arrivals 256`, or leave it out",),
        Fix("write `arrivals 256`", (Edit(span(text, "arrivals 128"), "arrivals 256"),)),
    )
    assert (
        render_diagnostic(finding, SourceFile("specs/v9.gemmspec", text))
        == """\
error[GS112]: barrier `ld2mma` is declared with 128 arrivals, but 256 complete its phase
  --> specs/v9.gemmspec:19:66
   |
14 | role writeback = epilogue  on warpgroups 0..1 chunk 64  # two instances
   |                            ------------------ all 128 threads of this warpgroup arrive, in each of 2 CTAs
19 | barrier ld2mma  [consumer]  writeback -> consumer   via threads  arrivals 128  phase 1  at cta 0
   |                                                                  ^^^^^^^^^^^^ the barrier opens when half have arrived
   = note: consumer 0 may then overwrite TMEM columns 0..255 while writeback 0 of CTA 1 still reads them
   = help: write `arrivals 256`, or leave it out (fix available)
"""  # noqa: E501
    )


def test_labels_of_one_line_hang_below_it_from_right_to_left() -> None:
    text = "role a = tma on b\n"
    labels = (Label(span(text, "role"), "one"), Label(span(text, "tma"), "two"))
    assert rendered(text, "on", *labels, label="three") == [
        " --> a.gemmspec:1:14",
        "  |",
        "1 | role a = tma on b",
        "  | ----     --- ^^ three",
        "  | |        |",
        "  | |        two",
        "  | one",
    ]


def test_the_primary_mark_shows_where_marks_overlap() -> None:
    text = "stages 6\n"
    assert rendered(text, "6", Label(span(text, "stages 6"), "the count"))[2:] == [
        "1 | stages 6",
        "  | -------^",
        "  | |",
        "  | the count",
    ]
    assert rendered(text, "stages", Label(span(text, "stages"), "same"), label="here")[3] == "  | ^^^^^^ here"


def test_a_span_of_several_lines_is_marked_at_both_ends() -> None:
    text = "program p {\n  wait a\n  mma\n}\n"
    assert rendered(text, "p {\n  wait a\n  mma\n}", label="this program")[1:] == [
        "  |",
        "1 | program p {",
        "  |         ^^^",
        "...",
        "4 | }",
        "  | ^ this program",
    ]
    assert "..." not in rendered(text, "wait a\n  mma", label="two lines")


def test_a_span_that_ends_with_its_line_stays_on_it() -> None:
    assert rendered("a b\nc\n", "b\n")[2:] == ["1 | a b", "  |   ^"]


def test_tabs_and_wide_characters_are_as_wide_as_a_terminal_shows_them() -> None:
    assert rendered("\ta\tb", "b")[2:] == ["1 |     a    b", "  |          ^"]
    assert rendered("核心 bad", "bad")[2:] == ["1 | 核心 bad", "  |      ^^^"]
    assert rendered("核心 bad", "核心")[2:] == ["1 | 核心 bad", "  | ^^^^"]
    assert rendered("e\u0301 bad", "bad")[2:] == ["1 | e\u0301 bad", "  |   ^^^"]


def test_no_control_character_reaches_the_terminal() -> None:
    lines = rendered("a \x1b[31m \u202e bad", "bad")
    assert lines[2:] == ["1 | a \u241b[31m \ufffd bad", "  |           ^^^"]


def test_a_long_line_is_cut_around_its_mark() -> None:
    text = "x" * 500 + " bad " + "y" * 500
    row, mark = rendered(text, "bad", label="here")[2:]
    assert row.startswith("1 | ...x") and row.endswith("y...") and len(row) < WIDTH + 12
    assert row[mark.index("^") : mark.rindex("^") + 1] == "bad" and mark.endswith("^^^ here")
    row, mark = rendered("bad " + "y" * 500, "bad")[2:]
    assert row.startswith("1 | bad yyy") and row.endswith("...") and mark == "  | ^^^"


def test_a_mark_outside_of_the_shown_part_points_to_where_it_was_cut() -> None:
    text = "first " + "x" * 500 + " bad"
    row, mark, *rest = rendered(text, "bad", Label(span(text, "first"), "before"), label="here")[2:]
    assert row[mark.index("^") :] == "bad"
    assert rest == ["  |    |", "  |    before"]


def test_an_empty_span_at_the_end_has_one_caret() -> None:
    for text, line in (("stages", "1 | stages"), ("stages\n", "2 |"), ("", "1 |")):
        found = Diagnostic("GS001", Severity.ERROR, "the file ends", Span(len(text), len(text)))
        shown = render_diagnostic(found, SourceFile("a", text)).splitlines()
        assert shown[3] == line and shown[4].count("^") == 1


def test_notes_of_several_lines_are_aligned() -> None:
    found = Diagnostic("GS110", Severity.ERROR, "stuck", Span(0, 1), notes=("first\nsecond",))
    assert render_diagnostic(found, SourceFile("a", "x")).splitlines()[-2:] == ["  = note: first", "          second"]


def test_colours_change_nothing_but_colours() -> None:
    text = "role a = tma on b\n"
    found = Diagnostic("GS305", Severity.WARNING, "odd", span(text, "tma"), "here", (Label(span(text, "a"), "and"),))
    source = SourceFile("a", text)
    coloured = render_diagnostic(found, source, colour=True)
    plain = "".join(part.partition("m")[2] if i else part for i, part in enumerate(coloured.split("\x1b[")))
    assert [line.rstrip() for line in plain.splitlines()] == render_diagnostic(found, source).splitlines()
    assert coloured.startswith("\x1b[1;33mwarning[GS305]\x1b[0m")
    assert all(line.count("\x1b[") % 2 == 0 for line in coloured.splitlines())


def test_the_last_line_counts() -> None:
    def report(*severities: Severity) -> Report:
        return Report(SourceFile("a", "x"), tuple(Diagnostic("GS305", s, "m", Span(0, 1)) for s in severities))

    error, warning, advice = Severity.ERROR, Severity.WARNING, Severity.ADVICE
    assert summary([report()]) == "a: no findings"
    assert summary([report(), report()]) == "2 files: no findings"
    clean = replace(report(), proved=2)
    proved = "proved for every K and any number of tiles: no deadlock, no race"
    assert summary([clean]) == f"a: {proved}, 2 barriers balanced"
    assert summary([clean, clean]) == f"2 files: {proved}, 4 barriers balanced"
    assert summary([clean, report()]) == "2 files: no findings"
    assert summary([report(error, warning, error)]) == "2 errors, 1 warning in 1 file"
    assert summary([report(advice), report(warning)]) == "1 warning, 1 suggestion in 2 files"
    assert render([report(error), report()]).endswith("  | ^\n\n1 error in 2 files\n")


MARKS = st.tuples(st.integers(0, 200), st.integers(0, 200), st.text("ab", max_size=4))


@given(st.text(max_size=200), st.lists(MARKS, min_size=1, max_size=5))
def test_anything_can_be_rendered(text: str, marks: list[tuple[int, int, str]]) -> None:
    spans = [(Span(min(a, b, len(text)), min(max(a, b), len(text))), label) for a, b, label in marks]
    (primary, label), *others = spans
    found = Diagnostic("GS001", Severity.ERROR, "m", primary, label, tuple(Label(s, t) for s, t in others))
    source = SourceFile("a", text)
    plain = render_diagnostic(found, source)
    assert "^" in plain and "\x1b" not in plain
    render_diagnostic(found, source, colour=True)
    jsonschema.validate(json.loads(report_json.render([Report(source, (found,))], NAMES)), report_json.schema())


def test_json_holds_all_of_a_finding_and_keeps_to_its_schema() -> None:
    text = (ROOT / "specs/v9.gemmspec").read_text(encoding="utf-8").replace("stages   4", "stages   6")
    report = check(SourceFile("v9.gemmspec", text)).report
    data = json.loads(report_json.render([report], NAMES))
    jsonschema.validate(data, json.loads((ROOT / "docs/report.schema.json").read_text(encoding="utf-8")))
    (finding,) = data["files"][0]["diagnostics"]
    at = text.index("stages   6")
    assert (finding["code"], finding["name"], finding["severity"]) == ("GS301", "smem-over-capacity", "error")
    assert finding["span"]["start"] == {"offset": at, "line": 9, "column": 1}
    assert finding["fix"]["edits"][0]["text"] == "stages 4"
    assert data["errors"] == 1 and data["version"] == 1
