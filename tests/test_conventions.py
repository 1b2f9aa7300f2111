"""What the repository asks of itself: rules complete, pages fresh, messages of one style, files short."""

from __future__ import annotations

import ast
import difflib
import re
import runpy
from pathlib import Path

import pytest

from gemmspec.cli.fixes import apply
from gemmspec.diagnostics import Diagnostic, Severity
from gemmspec.driver import check
from gemmspec.rules import RULES, Rule
from gemmspec.source import SourceFile

ROOT = Path(__file__).parent.parent
RULE_FILES = ROOT / "gemmspec" / "rules"
HEADINGS = ["What it checks", "Why it matters", "Limits"]
LONGEST_FILE = 400
LONGEST_MESSAGE = 150
SPECS = [p for d in ("specs", "tests/corpus", "gemmspec/rules") for p in sorted((ROOT / d).rglob("*.gemmspec"))]
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
each_rule_of_specs = pytest.mark.parametrize("rule", [r for r in RULES if r.by_spec], ids=lambda rule: rule.code)


def diagnostics(text: str, advice: bool = False) -> tuple[Diagnostic, ...]:
    return check(SourceFile("a", text), advice=advice).report.diagnostics


def is_advice(path: Path) -> bool:
    """Whether a spec is about advice, which is given only where it is asked for."""
    return path.parent.name == "advice" or path.parent.name.startswith("gs5")


def test_codes_and_names_are_unique_and_sorted() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(re.fullmatch(r"GS[0-5]\d\d", code) for code in codes)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name) for rule in RULES)


def test_every_rule_file_is_in_the_table_and_nothing_else_is_there() -> None:
    stems = {rule.stem.relative_to(RULE_FILES) for rule in RULES}
    every = (path.relative_to(RULE_FILES) for path in RULE_FILES.rglob("gs*.*"))
    files = {path for path in every if "__pycache__" not in path.parts}
    found = {path.with_name(path.name.split(".")[0]) for path in files}
    assert found == stems
    assert {path.suffix for path in files} <= {".py", ".md", ".gemmspec"}


@each_rule
def test_a_rule_has_one_name_everywhere(rule: Rule) -> None:
    name = rule.name.replace("-", "_")
    assert rule.stem.name == f"{rule.code.lower()}_{name}"
    check_function = rule.spec_check or rule.protocol_check or rule.verdict_check
    assert check_function is None or check_function.__name__ == name


@each_rule
def test_a_page_has_its_headings(rule: Rule) -> None:
    headings = re.findall(r"^## (.*)$", rule.page, re.MULTILINE)
    more = ["On a GPU"] if rule.subject in ("protocol", "proof") and rule.severity is Severity.ERROR else []
    assert [h for h in headings if h in HEADINGS] == HEADINGS
    assert set(headings) <= {*HEADINGS, "On a GPU"} and set(more) <= set(headings)
    sections = re.split(r"^## .*$", rule.page, flags=re.MULTILINE)[1:]
    assert all(section.strip() for section in sections)


@each_rule_of_specs
def test_the_bad_spec_breaks_only_its_own_rule_and_the_good_one_none(rule: Rule) -> None:
    advice = rule.severity is Severity.ADVICE
    found = diagnostics(rule.bad, advice)
    assert {d.code for d in found} == {rule.code}
    assert {d.severity for d in found} == {rule.severity}
    assert diagnostics(rule.good, advice) == ()


@each_rule_of_specs
def test_the_good_spec_is_the_bad_one_less_a_small_edit(rule: Rule) -> None:
    bad, good = rule.bad.splitlines(), rule.good.splitlines()
    changed = [line for line in difflib.ndiff(bad, good) if line[0] in "+-" and "#~" not in line]
    assert 0 < len(changed) <= 8


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_messages_have_one_style_and_spans_lie_in_the_text(path: Path) -> None:
    text = path.read_bytes().decode("utf-8")
    for d in diagnostics(text, is_advice(path)):
        for words in (d.message, d.label, *(label.text for label in d.labels), *d.notes, *d.helps):
            assert not words.endswith("."), words
            assert not re.match(r"[A-Z][a-z]", words), f"begins with a capital: {words}"
            assert words.count("`") % 2 == 0, f"a backtick is alone: {words}"
        assert d.message and "\n" not in d.message and len(d.message) <= LONGEST_MESSAGE, d.message
        assert not re.match(r"(write|add|delete|use) ", d.message), f"the fix belongs into a help: {d.message}"
        edits = d.fix.edits if d.fix else ()
        for span in (d.span, *(label.span for label in d.labels), *(edit.span for edit in edits)):
            assert 0 <= span.start <= span.end <= len(text)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_a_fix_mends_what_it_says(path: Path) -> None:
    text = path.read_bytes().decode("utf-8")
    for d in diagnostics(text, is_advice(path)):
        if d.fix is None:
            continue
        mended = apply(text, [d.fix])
        left = [(o.code, o.message) for o in diagnostics(mended, is_advice(path))]
        assert (d.code, d.message) not in left, f"{d.fix.title} does not mend: {d.message}"


@pytest.mark.parametrize("folder", ["gemmspec", "tests", "docs", "bench"])
def test_files_are_short_and_say_what_they_are(folder: str) -> None:
    for path in sorted((ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= LONGEST_FILE, f"{path} has {text.count(chr(10))} lines, more than {LONGEST_FILE}"
        assert not text or ast.get_docstring(ast.parse(text)), f"{path} has no docstring"


def test_generated_pages_are_fresh() -> None:
    stale = runpy.run_path(str(ROOT / "docs" / "generate.py"))["stale"]()
    assert stale == [], "run `python docs/generate.py`"
