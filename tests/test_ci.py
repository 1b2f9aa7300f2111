"""What docs/ci.md and the pre-commit hooks run exists, and does what they need of it."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

from gemmspec import cli

ROOT = Path(__file__).parent.parent
TEXTS = [ROOT / "docs" / "ci.md", ROOT / ".pre-commit-hooks.yaml"]
COMMANDS = sorted(
    {
        found
        for path in TEXTS
        for found in re.findall(r"gemmspec (?:lint|fmt)(?: (?:--?[a-z-]*|github|sarif|json|specs))*", path.read_text())
    }
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_clean_on_the_shipped_specs(command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = command.split()
    (tmp_path / "specs").mkdir()
    spec = (ROOT / "specs" / "v9.gemmspec").read_bytes()
    (tmp_path / "specs" / "v9.gemmspec").write_bytes(spec)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", words if words[-1] in ("specs", "-") else [*words, "specs/v9.gemmspec"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(spec), encoding="utf-8"))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    assert (tmp_path / "specs" / "v9.gemmspec").read_bytes() == spec


def test_the_hooks_that_the_page_names_exist() -> None:
    hooks = set(re.findall(r"^- id: (\S+)$", TEXTS[1].read_text(), re.MULTILINE))
    named = set(re.findall(r"- id: (\S+)", TEXTS[0].read_text()))
    assert len(COMMANDS) >= 8 and named <= hooks
