"""The command line: golden transcripts in tests/cli/, and what a transcript cannot show.

A transcript is a text file of commands, each with the output and exit status that it must have. `--update-golden`
rewrites them. Commands run in a folder of their own, which holds copies of the shipped specs.
"""

from __future__ import annotations

import io
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gemmspec import cli
from gemmspec.source import SourceFile
from gemmspec.syntax.format import format_source
from gemmspec.version import __version__

ROOT = Path(__file__).parent.parent
TRANSCRIPTS = sorted((ROOT / "tests" / "cli").glob("*.txt"))
GEMMSPEC = [sys.executable, "-m", "gemmspec.cli"]
PROVED = "proved for every K and any number of tiles: no deadlock, no race, 4 barriers balanced"
BROKEN = "kernel k\nstaegs 4\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder with v7, v8 and v9, formatted, and without settings from outside."""
    (tmp_path / "specs").mkdir()
    for name in ("v7", "v8", "v9"):
        source = SourceFile(name, (ROOT / "specs" / f"{name}.gemmspec").read_text(encoding="utf-8"))
        (tmp_path / "specs" / f"{name}.gemmspec").write_text(format_source(source), encoding="utf-8")
    text = (tmp_path / "specs" / "v9.gemmspec").read_text(encoding="utf-8")
    (tmp_path / "deep.gemmspec").write_text(text.replace("stages   4", "stages   6"), encoding="utf-8")
    (tmp_path / "ragged.gemmspec").write_text(text.replace("M = 4096", "M = 4000"), encoding="utf-8")
    (tmp_path / "latin1.gemmspec").write_bytes(b"# caf\xe9\nkernel k\n")
    (tmp_path / "loose.gemmspec").write_text(text.replace("stages   4", "stages      4"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "GEMMSPEC_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def run(*words: str, stdin: str = "") -> tuple[int, str]:
    """Run a command in this process; return its exit status and all that it printed."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    saved = sys.argv, sys.stdin, sys.stdout, sys.stderr
    sys.argv = ["gemmspec", *words]
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    sys.stdout = sys.stderr = out
    try:
        with pytest.raises(SystemExit) as ended:
            cli.main()
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = saved
    out.seek(0)
    code = ended.value.code
    assert isinstance(code, int)
    return code, out.buffer.read().decode("utf-8")  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path, update_golden: bool) -> None:
    expected = path.read_text(encoding="utf-8")
    actual = "".join(_replay(expected))
    if update_golden:
        path.write_text(actual, encoding="utf-8")
    else:
        assert actual == expected, "if this is right, run pytest --update-golden"


def _replay(transcript: str) -> Iterator[str]:
    """Yield the transcript anew: remarks (`% ...`), and commands (`$ gemmspec ...`) with output and status."""
    for line in re.findall(r"^[$%] .*$", transcript, re.MULTILINE):
        yield line + "\n"
        if line.startswith("$ "):
            words = line.removeprefix("$ ").split()
            assert words[0] == "gemmspec"
            status, output = run(*words[1:])
            yield output
            yield f"[{status}]\n\n" if status else "\n"


def test_no_failure_is_a_traceback() -> None:
    for words in (
        ["lint", "missing"],
        ["lint", "latin1.gemmspec"],
        ["lint", "\0"],
        ["lint"],
        ["nope"],
        ["lint", "specs/x"],
    ):
        status, output = run(*words)
        assert status == 2 and "Traceback" not in output and output


def test_a_bug_is_called_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr("gemmspec.driver.check", broken)
    status, output = run("lint", "specs")
    assert status == 3 and "this is a bug in gemmspec (RuntimeError: oops)" in output


def test_one_unreadable_file_does_not_hide_the_others() -> None:
    status, output = run("lint", "missing.gemmspec", "deep.gemmspec", "latin1.gemmspec")
    assert status == 2
    assert "missing.gemmspec: no such file" in output and "GS301" in output and "not UTF-8" in output


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs permissions that hold")
def test_a_folder_without_permission_is_reported(folder: Path) -> None:
    (folder / "closed").mkdir(mode=0)
    status, output = run("lint", "closed")
    assert status == 2 and "closed: permission denied" in output


def test_a_folder_is_searched_for_specs_and_must_have_some(folder: Path) -> None:
    (folder / "empty").mkdir()
    assert run("lint", "specs")[0] == 0
    status, output = run("lint", "empty")
    assert status == 2 and "no *.gemmspec file in folder empty" in output


def test_standard_input_is_a_dash() -> None:
    status, output = run("lint", "-", stdin=BROKEN)
    assert status == 1 and "--> <stdin>:2:1" in output


def test_advice_alone_is_no_finding() -> None:
    status, output = run("lint", "--advice", "ragged.gemmspec")
    assert run("lint", "ragged.gemmspec") == (0, f"ragged.gemmspec: {PROVED}\n")
    assert status == 0 and "advice[GS507]" in output and "error" not in output


def test_colours_follow_the_option_then_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in run("lint", "deep.gemmspec")[1]
    assert "\x1b[" in run("lint", "deep.gemmspec", "--color", "always")[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in run("lint", "deep.gemmspec")[1]
    assert "\x1b[" not in run("lint", "deep.gemmspec", "--color", "never")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run("lint", "deep.gemmspec")[1]


def test_sizes_and_target_take_the_place_of_written_ones() -> None:
    status, output = run("lint", "specs/v9.gemmspec", "--size", "K=4100")
    assert status == 1 and "K is 4100" in output
    status, output = run("lint", "specs/v9.gemmspec", "--target", "sm_90a")
    assert status == 1 and "sm_90a" in output


def test_formatting_keeps_the_mode_and_leaves_no_other_file(folder: Path) -> None:
    path = folder / "loose.gemmspec"
    path.chmod(0o640)
    before = sorted(folder.iterdir())
    assert run("fmt", "loose.gemmspec")[0] == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o640 and sorted(folder.iterdir()) == before
    assert path.read_text(encoding="utf-8") == (folder / "specs/v9.gemmspec").read_text(encoding="utf-8")


def test_what_cannot_be_read_is_not_formatted(folder: Path) -> None:
    (folder / "broken.gemmspec").write_text(BROKEN, encoding="utf-8")
    status, output = run("fmt", "broken.gemmspec")
    assert status == 1 and "left as it is" in output
    assert (folder / "broken.gemmspec").read_text(encoding="utf-8") == BROKEN


def test_a_new_spec_is_clean_and_does_not_replace_a_file(folder: Path) -> None:
    assert run("new", "mine", "--from", "v8") == (0, "wrote mine.gemmspec\n")
    assert "kernel mine\n" in (folder / "mine.gemmspec").read_text(encoding="utf-8")
    assert run("lint", "mine.gemmspec")[0] == 0
    status, output = run("new", "mine")
    assert status == 2 and "mine.gemmspec exists" in output
    assert run("new", "mine", "--force")[0] == 0


@pytest.mark.parametrize("name", ["v7", "v8", "v9"])
def test_what_show_prints_is_the_same_spec(name: str) -> None:
    status, shown = run("show", f"specs/{name}.gemmspec")
    assert status == 0
    Path("shown.gemmspec").write_text(shown, encoding="utf-8")
    assert run("lint", "shown.gemmspec")[0] == 0
    assert run("show", "shown.gemmspec") == (0, shown)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_command(shell: str) -> None:
    status, output = run("completion", shell)
    assert status == 0 and "_GEMMSPEC_COMPLETE" in output


def test_the_shell_is_offered_commands() -> None:
    env = os.environ | {"_GEMMSPEC_COMPLETE": "bash_complete", "COMP_WORDS": "gemmspec li", "COMP_CWORD": "1"}
    done = subprocess.run(GEMMSPEC, env=env | _path(), capture_output=True, text=True, check=False)
    assert done.stdout == "plain,lint\n"


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version") == (0, f"gemmspec {__version__}\n")


def test_a_reader_that_leaves_is_no_error() -> None:
    command = [*GEMMSPEC, "lint", "--color", "never", *["deep.gemmspec", "ragged.gemmspec"]]
    process = subprocess.Popen(command, env=os.environ | _path(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1


def test_an_interrupt_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gemmspec.driver.check", interrupted)
    status, output = run("lint", "specs")
    assert status == 130 and output.strip() == ""


def _path() -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT)}


def test_safe_fixes_are_made_and_the_rest_is_told(folder: Path) -> None:
    text = (folder / "specs/v9.gemmspec").read_text(encoding="utf-8")
    path = folder / "typos.gemmspec"
    path.write_text(text.replace("= tma ", "= tmaa").replace("arrivals 256", "arivals 256"), encoding="utf-8")
    status, output = run("lint", "--fix", "typos.gemmspec")
    assert status == 0 and "made 2 fixes" in output
    assert path.read_text(encoding="utf-8") == text.replace("= tma ", "= tma")
    assert run("lint", "--fix", "deep.gemmspec")[0] == 1
    status, output = run("lint", "--fix", "-", stdin=text.replace("= tma ", "= tmaa"))
    assert status == 0 and text in output
