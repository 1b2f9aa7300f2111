"""Literate tests: every spec that is kept in the repository states, in comments, all that is said of it.

    barrier full [stages] producer -> consumer arrivals 3
    #~^ GS112 "declared with 3 arrivals"

A bare `#~` speaks of its own line; each `^` is one line up. The text is a part of the message. All rules run on every
file (those that give advice on the files about advice), and what they say must equal the comments exactly: a rule that
fires where it should not fails too.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gemmspec.driver import check
from gemmspec.source import SourceFile

ROOT = Path(__file__).parent.parent
EXPECTED = re.compile(r'#~(?P<up>\^*)\s*(?P<code>GS\d{3})(?:\s+"(?P<text>[^"\n]*)")?\s*$')
FILES = [
    path
    for folder in ("specs", "tests/corpus", "gemmspec/rules")
    for path in sorted((ROOT / folder).rglob("*.gemmspec"))
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_spec_gets_the_diagnostics_that_it_states(path: Path) -> None:
    source = SourceFile(str(path.relative_to(ROOT)), path.read_bytes().decode("utf-8"))
    expected = _expected(source)
    unclaimed: list[str] = []
    advice = path.parent.name == "advice" or path.parent.name.startswith("gs5")
    for d in check(source, advice=advice).report.diagnostics:
        line, _ = source.position(d.span.start)
        claim = next((e for e in expected if e[:2] == (line, d.code) and e[2] in d.message), None)
        if claim is None:
            unclaimed.append(f"line {line}: {d.code} {d.message}")
        else:
            expected.remove(claim)
    missing = [f'line {line}: {code} "{text}"' for line, code, text in expected]
    assert not unclaimed and not missing, f"said but not stated: {unclaimed}; stated but not said: {missing}"


def _expected(source: SourceFile) -> list[tuple[int, str, str]]:
    """Return (line, code, part of the message) of each comment of a source."""
    found: list[tuple[int, str, str]] = []
    for number, line in enumerate(source.text.split("\n"), start=1):
        if "#~" not in line:
            continue
        match = EXPECTED.search(line)
        assert match is not None, f'{source.name}:{number}: not of the form #~ GS123 "text": {line}'
        found.append((number - len(match["up"]), match["code"], match["text"] or ""))
    return found
