"""The examples of docs/language.md are linted as they stand.

A block's first line says what it is: `gemmspec` a whole spec; `gemmspec of NAME` programs for the spec of that name on
the same page; `gemmspec line of NAME` lines, each of which takes the place of the same line of a shipped spec. A code
that follows is what lint must say; without one it must be silent.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gemmspec.driver import check
from gemmspec.source import SourceFile
from gemmspec.syntax.nodes import without_spans
from gemmspec.syntax.parse import parse

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```gemmspec *(.*?)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
WHOLE = {re.search(r"kernel (\w+)", text)[1]: text for head, text in BLOCKS if not head}  # pyright: ignore


def codes(text: str) -> list[str]:
    return [d.code for d in check(SourceFile("example", text)).report.diagnostics]


@pytest.mark.parametrize("name", WHOLE)
def test_whole_specs_are_clean(name: str) -> None:
    assert codes(WHOLE[name]) == []


@pytest.mark.parametrize("head, text", [b for b in BLOCKS if b[0].startswith("of ")])
def test_programs(head: str, text: str) -> None:
    _, name, *expected = head.split()
    assert codes(WHOLE[name] + text) == expected


@pytest.mark.parametrize("head, text", [b for b in BLOCKS if b[0].startswith("line of ")])
def test_lines_may_stand_in_a_shipped_spec(head: str, text: str) -> None:
    spec = (ROOT / "specs" / f"{head.split()[2]}.gemmspec").read_text(encoding="utf-8")
    for line in text.splitlines():
        words = line.split()[: 2 if line.startswith(("role", "barrier")) else 1]
        changed = re.sub(rf"^{' +'.join(words)} .*$", line, spec, flags=re.MULTILINE)
        assert line in changed and codes(changed) == [], line


def test_no_block_is_left_out() -> None:
    assert len(BLOCKS) == PAGE.count("```gemmspec") >= 10


def test_the_standard_programs_on_the_page_are_those_that_run() -> None:
    from gemmspec.report.spec import program_text

    text = next(text for head, text in BLOCKS if head == "of smallest")
    protocol = check(SourceFile("example", WHOLE["smallest"])).protocol
    assert protocol is not None
    shown = "\n".join(program_text(protocol, role) for role in protocol.spec.roles)
    shown = re.sub(r"\[0\]| \d+$", "", shown, flags=re.MULTILINE)
    assert without_spans(parse(SourceFile("a", text))[0]) == without_spans(parse(SourceFile("b", shown))[0])
