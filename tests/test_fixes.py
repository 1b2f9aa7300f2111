"""Fixes: what is offered mends what it says and breaks nothing, for every rule and for specs that were damaged."""

from __future__ import annotations

import io
import re
import stat
import sys
from pathlib import Path

import pytest

from gemmspec import cli
from gemmspec.cli.fixes import apply, chosen, mend
from gemmspec.diagnostics import Diagnostic, Edit, Fix, Report, Severity
from gemmspec.driver import check
from gemmspec.mend import with_fixes
from gemmspec.mend.programs import Line, differences
from gemmspec.mend.trial import edits_between
from gemmspec.report.spec import spec_text
from gemmspec.rules import RULES, Rule
from gemmspec.source import SourceFile, Span
from gemmspec.syntax.format import format_source

ROOT = Path(__file__).parent.parent
SPECS = {name: (ROOT / f"specs/{name}.gemmspec").read_text(encoding="utf-8") for name in ("v7", "v8", "v9")}

PROVED = "proved for every K and any number of tiles: no deadlock, no race, 4 barriers balanced"

# Rules whose bad spec is mended by a safe edit, and those whose edit may not be what was meant.
SAFE = ["GS004", "GS007", "GS008", "GS011", "GS012", "GS016", "GS111", "GS112", "GS113", "GS114", "GS115", "GS122"]
UNSAFE = [
    *("GS116", "GS117", "GS118", "GS119", "GS121", "GS123", "GS125", "GS126"),
    *("GS201", "GS202", "GS203", "GS204", "GS207", "GS208"),
    *("GS301", "GS311", "GS312", "GS503", "GS504", "GS505"),
]


def report(source: SourceFile, advice: bool = False) -> Report:
    """What `lint` sees: the findings, with those fixes that were tried."""
    return with_fixes(check(source, advice=advice), lambda s: check(s))


def named(rule: Rule) -> str:
    return rule.code


def mended(text: str, unsafe: bool = False, advice: bool = False) -> Report:
    return mend(SourceFile("spec", text), lambda s: report(s, advice), unsafe=unsafe).report


def test_which_rules_have_fixes() -> None:
    safe, unsafe = set[str](), set[str]()
    for rule in RULES:
        if rule.by_spec:
            found = report(SourceFile("bad", rule.bad), rule.severity is Severity.ADVICE).diagnostics
            fixes = [d.fix for d in found if d.fix is not None]
            if fixes:
                (safe if all(fix.safe for fix in fixes) else unsafe).add(rule.code)
    assert (sorted(safe), sorted(unsafe)) == (SAFE, UNSAFE)


@pytest.mark.parametrize("rule", [r for r in RULES if r.code in SAFE + UNSAFE], ids=named)
def test_after_the_fix_the_finding_is_gone_and_no_other_came(rule: Rule) -> None:
    advice = rule.severity is Severity.ADVICE
    after = mended(rule.bad, unsafe=rule.code in UNSAFE, advice=advice)
    assert after.diagnostics == ()
    # What is safe keeps every line that was right.
    if rule.code in SAFE:
        assert abs(after.source.text.count("\n") - rule.bad.count("\n")) <= 1


@pytest.mark.parametrize("rule", [r for r in RULES if r.code in UNSAFE], ids=named)
def test_what_is_unsafe_is_made_only_when_asked(rule: Rule) -> None:
    after = mended(rule.bad, advice=rule.severity is Severity.ADVICE)
    assert after.source.text == rule.bad


DAMAGE = [
    (r"= tma\b", "= tmaa"),
    (r"= epilogue\b", "= epilog"),
    (r"\[stages\]", "[stage]"),
    (r"\bpersistent\b", "persistant"),
    (r"via commit", "via comit"),
    (r"\bphase 0\b", "phase 1"),
    (r"\bphase 1\b", "phase 0"),
    (r"\barrivals 1\b", "arrivals 2"),
    (r"\barrivals 256\b", "arrivals 128"),
    (r"\barrivals\b", "arivals"),
    (r"multicast 0b11", "multicast 0b01"),
    (r"at cta 0", "at cta 1"),
    (r"\baccumulate f32\b", "accumulate f16"),
    (r"\bsm_100a\b", "sm_100"),
    (r"\bproducer  ->", "producr  ->"),
]  # fmt: skip


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize(("right", "wrong"), DAMAGE)
def test_safe_fixes_bring_a_damaged_spec_back(name: str, right: str, wrong: str) -> None:
    text = SPECS[name]
    for place in re.finditer(right, text):
        damaged = text[: place.start()] + wrong + text[place.end() :]
        before = check(SourceFile("spec", damaged)).report
        after = mended(damaged)
        if any(d.fix and d.fix.safe for d in before.diagnostics):
            assert after.diagnostics == (), damaged[place.start() - 40 : place.end() + 40]
        assert {d.code for d in after.diagnostics} <= {d.code for d in before.diagnostics}


PLACES = re.compile(r" +(arrivals \d+|at cta 0|multicast (0b11|column|peers))")
CLUSTERS = {
    "two pairs": (SPECS["v9"], "2 x 1 ", "4 x 1 "),
    "both operands shared": (
        (ROOT / "specs/hopper_n128_cluster_dynamic.gemmspec").read_text().replace("multicast B", "multicast A, B"),
        "2 x 1 ",
        "2 x 2 ",
    ),
    "split": ((ROOT / "specs/hopper_split2_n64_dynamic.gemmspec").read_text(), "", ""),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_arrivals_at_wrong_ctas_are_mended_in_words_of_the_language(name: str) -> None:
    text, old, new = CLUSTERS[name]
    assert old in text
    right = PLACES.sub("", text.replace(old, new).replace("132", "64").replace("148", "64"))
    assert check(SourceFile("spec", right)).report.ok
    for place in ("at cta 1", "multicast own"):
        damaged = re.sub("(?m)^(barrier [^#\\n]*)", rf"\1 {place} ", right)
        found = check(SourceFile("spec", damaged)).report.diagnostics
        assert any(d.fix is not None and d.fix.safe for d in found)
        assert mended(damaged).diagnostics == (), place


def test_several_defects_are_mended_in_one_run() -> None:
    text = SPECS["v9"]
    damaged = text.replace("= tma ", "= tmaa").replace("arivals", "arrivals").replace("arrivals 256", "arivals 128")
    assert damaged != text
    assert mended(damaged).diagnostics == ()


@pytest.mark.parametrize("name", SPECS)
def test_a_statement_that_was_dropped_comes_back(name: str) -> None:
    protocol = check(SourceFile("spec", SPECS[name])).protocol
    assert protocol is not None
    lines = spec_text(protocol).splitlines(keepends=True)
    tried = 0
    for i, line in enumerate(lines):
        if line.split()[:1] and line.split()[0] in ("wait", "commit", "arrive", "expect"):
            after = mended("".join([*lines[:i], *lines[i + 1 :]]), unsafe=True)
            assert after.diagnostics == (), line
            tried += 1
    assert tried >= 7


@pytest.mark.parametrize("written_out", [False, True], ids=["standard", "programs"])
@pytest.mark.parametrize("name", [*SPECS, "hopper_n256_dynamic"])
def test_a_barrier_that_is_missing_is_named_and_comes_back(name: str, written_out: bool) -> None:
    text = (ROOT / f"specs/{name}.gemmspec").read_text(encoding="utf-8")
    protocol = check(SourceFile("spec", text)).protocol
    assert protocol is not None
    lines = (spec_text(protocol) if written_out else text).splitlines(keepends=True)
    for barrier in protocol.barriers:
        left = "".join(line for line in lines if not re.search(rf"\b{barrier.name}\b", line))
        found = check(SourceFile("spec", left)).report.diagnostics
        full = barrier.phase == 0
        assert [d.code for d in found] == ["GS126" if full else "GS118"], barrier.name
        assert mended(left, unsafe=True).diagnostics == (), barrier.name


@pytest.mark.parametrize("rule", [r for r in RULES if r.code in SAFE + UNSAFE], ids=named)
def test_a_formatted_spec_stays_so_when_it_is_mended(rule: Rule) -> None:
    # A file that cannot be parsed has no layout yet; one that was laid out before it was damaged has.
    clean = format_source(SourceFile("spec", rule.bad))
    if clean == rule.bad and rule.code == "GS004":
        good = format_source(SourceFile("spec", rule.good))
        clean = good.replace("stages", "staegs", 1).replace("block", "blokc", 1)
    after = mend(SourceFile("spec", clean), lambda s: report(s, rule.severity is Severity.ADVICE), unsafe=True).report
    assert after.source.text != clean
    assert format_source(after.source) == after.source.text


def test_a_loose_spec_keeps_its_layout() -> None:
    loose = SPECS["v9"].replace("arrivals 256", "arrivals 128").replace("stages   4", "stages  4")
    assert mended(loose).source.text == SPECS["v9"].replace("stages   4", "stages  4")


def test_a_statement_does_not_leave_an_empty_if_behind() -> None:
    text = "if k != first {\n  arrive x\n}\nmma\n"
    words = ("if k != first {", "arrive x", "}", "mma")
    have = [Line((w,) if i else ("if", w), w, Span(text.index(w), text.index(w) + len(w))) for i, w in enumerate(words)]
    changes = {change.title: change.text for change in differences(text, have, have[3:])}
    assert changes["delete `arrive x`"] == "mma\n"


def edit(start: int, end: int, text: str) -> Fix:
    return Fix("", (Edit(Span(start, end), text),))


def test_edits_that_touch_are_left_for_the_next_round() -> None:
    a, b, c, d = edit(0, 3, "x"), edit(2, 4, "y"), edit(4, 5, ""), edit(4, 4, "z")
    assert chosen([a, b, c, d]) == [a, c]
    assert apply("abcdef", [a, b, c, d]) == "xdf"
    # Two insertions at one place have no order, so they are not made together.
    assert apply("ab", [edit(1, 1, "x"), edit(1, 1, "y")]) == "axb"


def test_fixes_that_undo_each_other_come_to_an_end() -> None:
    def check_one(source: SourceFile) -> Report:
        other = "b" if source.text == "a" else "a"
        fix = edit(0, 1, other)
        return Report(source, (Diagnostic("GS001", Severity.ERROR, "wrong", Span(0, 1), fix=fix),))

    assert mend(SourceFile("spec", "a"), check_one).report.source.text == "b"


def test_edits_between_two_texts_make_one_of_the_other() -> None:
    old, new = "a\nb\nc\n", "b\nx\nc\nd"
    assert apply(old, [Fix("", edits_between(old, new))]) == new


# -- the command ------------------------------------------------------------------------------------------------------


def run(monkeypatch: pytest.MonkeyPatch, *words: str, stdin: str = "") -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "argv", ["gemmspec", "lint", *words])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out.getvalue(), err.getvalue()


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    path = tmp_path / "damaged.gemmspec"
    path.write_text(SPECS["v9"].replace("arrivals 256", "arrivals 128"), encoding="utf-8")
    return path


def test_fix_writes_the_file_whole_and_keeps_its_mode(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged.chmod(0o640)
    before = damaged.stat().st_ino
    status, out, err = run(monkeypatch, "--fix", str(damaged))
    assert status == 0 and out == f"{damaged}: {PROVED}\n" and err == f"gemmspec: {damaged}: made 1 fix\n"
    assert damaged.read_text(encoding="utf-8") == SPECS["v9"]
    assert damaged.stat().st_ino != before and stat.S_IMODE(damaged.stat().st_mode) == 0o640
    assert [p.name for p in damaged.parent.iterdir()] == [damaged.name]


def test_diff_writes_nothing_and_tells_that_something_would_change(
    damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = damaged.read_text(encoding="utf-8")
    status, out, err = run(monkeypatch, "--diff", str(damaged))
    assert status == 1 and "\n-barrier ld2mma" in out and "\n+barrier ld2mma" in out and "would make 1 fix" in err
    assert damaged.read_text(encoding="utf-8") == text
    damaged.write_text(SPECS["v9"], encoding="utf-8")
    assert run(monkeypatch, "--diff", str(damaged))[:2] == (0, "")


def test_standard_input_is_mended_to_standard_output(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = damaged.read_text(encoding="utf-8")
    status, out, err = run(monkeypatch, "--fix", "-", stdin=text)
    assert status == 0 and out == SPECS["v9"] and f"<stdin>: {PROVED}" in err
    deep = SPECS["v9"].replace("stages   4", "stages   6")
    status, out, err = run(monkeypatch, "--fix", "-", stdin=deep)
    assert status == 1 and out == deep and "GS301" in err
    status, out, err = run(monkeypatch, "--fix", "--unsafe-fixes", "-", stdin=deep)
    assert status == 0 and out == SPECS["v9"]


def test_findings_that_are_left_give_status_1(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = damaged.read_text(encoding="utf-8").replace("stages   4", "stages   6")
    damaged.write_text(text, encoding="utf-8")
    status, out, _ = run(monkeypatch, "--fix", str(damaged))
    assert status == 1 and "GS301" in out and "GS112" not in out


def test_options_that_do_not_go_together(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "--unsafe-fixes", str(damaged))[0] == 2
    assert run(monkeypatch, "--statistics", "--format", "json", str(damaged))[0] == 2


def test_statistics_count_each_rule(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = damaged.read_text(encoding="utf-8").replace("= tma ", "= tmaa").replace("= mma ", "= mmma")
    damaged.write_text(text, encoding="utf-8")
    status, out, _ = run(monkeypatch, "--statistics", str(damaged))
    assert status == 1 and out.startswith("2  GS008  unknown-word (2 with a fix)\n")
