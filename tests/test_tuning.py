"""Tests of `gemmspec tune`, on GPUs that are none: dealing, resumption, what goes wrong, and what it says."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import tuning_fake
from tuning_fake import SETTING, Fake

from gemmspec import runtime
from gemmspec.runtime import Card, TableProblem
from gemmspec.runtime.card import NoGpu
from gemmspec.runtime.table import Result, Setting, Table, as_json, read_table
from gemmspec.runtime.tuning import Candidate, Tuned, tune

TESTS = Path(__file__).parent
sys.path.insert(0, str(TESTS / "gpu"))

import stub_kernels as kernels  # noqa: E402

SPEC = (TESTS.parent / "specs" / "hopper_n128_dynamic.gemmspec").read_text(encoding="utf-8")
CARD = Card("fake H200", 132, (9, 0))


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that measurements are written down in."""
    path = tmp_path / "log"
    path.touch()
    monkeypatch.setenv("TUNE_LOG", str(path))
    return path


def candidates(folder: Path, *names: str) -> list[Candidate]:
    folder.mkdir(exist_ok=True)
    paths = [kernels.write(folder, kernels.manifest(name), kernels.CUBIN + name.encode()) for name in names]
    return [Candidate(runtime.load(path), str(path)) for path in paths]


def shapes(count: int) -> list[tuple[int, int, int]]:
    return [(128 * i, 128, 64) for i in range(1, count + 1)]


def races(log: Path) -> list[tuple[str, str, str]]:
    """GPU, kernel and M of each time that was taken."""
    lines = [line.split() for line in log.read_text().splitlines() if line.startswith("race ")]
    return [(gpu, name, m) for _, gpu, name, m, _, _ in lines]


def run(tmp_path: Path, names: tuple[str, ...], count: int = 3, gpus: tuple[int, ...] = (0,), **more: Any) -> Tuned:
    table = Table(tmp_path / "t.sqlite")
    try:
        return tune(candidates(tmp_path / "k", *names), shapes(count), table, gpus, Fake, **more)
    finally:
        table.close()


def test_everything_is_measured_once_and_kept(tmp_path: Path, log: Path) -> None:
    said: list[tuple[int, int]] = []
    first = run(tmp_path, ("a1", "b2"), progress=lambda done, total, doing: said.append((done, total)))
    assert (first.measured, first.known, first.notes) == (6, 0, [])
    assert said[0] == (0, 6) and said[-1] == (6, 6)
    assert first.settings == {SETTING: (9, 0)}
    rows = read_table(tmp_path / "t.sqlite")
    assert {(r.kernel, r.m, r.ratio) for _, r in rows} == {
        (name, m, tuning_fake.ratio(name, (m, 128, 64))) for name in ("a1", "b2") for m in (128, 256, 384)
    }
    again = run(tmp_path, ("a1", "b2"))
    assert (again.measured, again.known) == (0, 6) and len(races(log)) == 6
    # More rounds, another kernel, another machine code: these are measured, and nothing else.
    assert run(tmp_path, ("a1", "b2", "c3")).measured == 3
    assert run(tmp_path, ("a1",), rounds=31).measured == 3
    kernels.CUBIN, before = kernels.CUBIN + b"new", kernels.CUBIN
    try:
        assert run(tmp_path, ("b2",)).measured == 3
    finally:
        kernels.CUBIN = before


def test_gpus_of_one_kind_share_the_shapes(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACE_S", "0.05")
    assert run(tmp_path, ("a1", "b2"), count=8, gpus=(0, 1)).measured == 16
    spans = [line.split() for line in log.read_text().splitlines()]
    assert {gpu for _, gpu, *_ in spans} == {"0", "1"} and len(spans) == 16
    of = {gpu: [(float(s), float(e)) for _, g, _, _, s, e in spans if g == gpu] for gpu in ("0", "1")}
    assert any(s < other_end and other < e for s, e in of["0"] for other, other_end in of["1"]), "side by side"


def test_gpus_of_two_kinds_measure_all_each(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_CARD", "1")
    tuned = run(tmp_path, ("a1",), gpus=(0, 1))
    assert tuned.measured == 6 and {s.device for s in tuned.settings} == {"fake H200", "fake H100"}
    assert sorted(races(log)) == sorted((gpu, "a1", str(m)) for gpu in "01" for m in (128, 256, 384))


@pytest.mark.parametrize(
    ("bad", "why", "times"),
    [
        ("wrong", "relative error 5.00e-01", 0),
        ("refused", "`A` is nothing", 0),
        ("breaks", "RuntimeError: CUDA error: an illegal memory access was encountered", 1),
        ("dies", "the process that measured it ended with status -9", 1),
        ("hangs", "it hangs: nothing moved for 1 s", 1),
    ],
)
def test_a_bad_kernel_costs_the_others_nothing(tmp_path: Path, log: Path, bad: str, why: str, times: int) -> None:
    tuned = run(tmp_path, ("a1", bad, "b2"), count=2, patience=1.0)
    assert tuned.notes == []
    rows = [r for _, r in read_table(tmp_path / "t.sqlite")]
    assert sorted(r.kernel for r in rows if not r.fault) == ["a1", "a1", "b2", "b2"]
    assert {r.kernel for r in rows if r.fault} == {bad} and all(why in r.fault for r in rows if r.fault)
    assert log.read_text().count(f"{bad} 0") == times, "what ends a process is not tried at another shape"
    assert run(tmp_path, ("a1", bad, "b2"), count=2).measured in (0, 1) or times
    choice = runtime.select(tmp_path / "k", tmp_path / "t.sqlite", card=CARD).choose(128, 128, 64)
    assert choice.kernel.name == "a1"


def test_what_does_not_fit_into_memory_is_noted(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.sqlite")
    tuned = tune(candidates(tmp_path / "k", "a1"), [(1 << 20, 8, 8), (128, 128, 64)], table, (0,), Fake)
    assert tuned.measured == 1 and tuned.notes == ["too large"]


def test_a_gpu_that_is_gone_leaves_the_work_to_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU_GONE", "1")
    tuned = run(tmp_path, ("a1",), gpus=(0, 1))
    assert tuned.measured == 3 and tuned.notes == ["torch sees no CUDA device"]
    with pytest.raises(NoGpu, match="torch sees no CUDA device"):
        run(tmp_path, ("a1",), gpus=(1,))


def command(tmp_path: Path, *words: str, gpus: int = 1, **environment: str) -> tuple[list[str], dict[str, str]]:
    """The command line on fake GPUs, and its environment."""
    given = {**os.environ, "GPUS": str(gpus), "TUNE_LOG": str(tmp_path / "log"), **environment}
    return [sys.executable, str(TESTS / "tuning_fake.py"), "tune", *words], given


def call(tmp_path: Path, *words: str, gpus: int = 1, **environment: str) -> subprocess.CompletedProcess[str]:
    argv, given = command(tmp_path, *words, gpus=gpus, **environment)
    return subprocess.run(argv, env=given, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)


SHAPES = [word for m in range(1, 9) for word in ("--shape", f"{128 * m}x128x64")]


@pytest.mark.parametrize("gpus", [1, 2])
def test_killed_and_started_again_it_goes_on(tmp_path: Path, log: Path, gpus: int) -> None:
    candidates(tmp_path / "k", "a1", "b2", "c3")
    argv, given = command(tmp_path, "k", *SHAPES, gpus=gpus, RACE_S="0.1")
    process = subprocess.Popen(argv, env=given, cwd=tmp_path, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while time.monotonic() < until and len(_rows(tmp_path)) < 9:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.5)  # its workers end with it
    kept, logged = _rows(tmp_path), races(log)
    assert 9 <= len(kept) < 24
    time.sleep(0.5)
    assert races(log) == logged, "nobody measures on for a process that was killed"
    done = call(tmp_path, "k", *SHAPES, gpus=gpus)
    assert done.returncode == 0, done.stderr
    rows = _rows(tmp_path)
    assert len(rows) == 24 and all(rows[key] == at for key, at in kept.items()), "what was kept is as it was"
    assert f"{24 - len(kept)} results measured, {len(kept)} were known: tune.sqlite" in done.stdout
    times = [(name, m) for _, name, m in races(log)]
    assert all(times.count((name, str(m))) == 1 for name, m in kept), "nothing that was kept was measured again"


def _rows(tmp_path: Path) -> dict[tuple[str, int], str]:
    """Kernel and M of what is in the table, and when it was measured."""
    if not (tmp_path / "tune.sqlite").is_file():
        return {}
    try:
        return {(r.kernel, r.m): r.at for _, r in read_table(tmp_path / "tune.sqlite")}
    except TableProblem:  # it is being made
        return {}


def test_ctrl_c_ends_it_with_what_there_is(tmp_path: Path) -> None:
    candidates(tmp_path / "k", "a1")
    argv, given = command(tmp_path, "k", *SHAPES, RACE_S="0.3")
    process = subprocess.Popen(
        argv, env=given, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
        # Shells start what runs in the background with interrupts ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    until = time.monotonic() + 60
    while time.monotonic() < until and len(_rows(tmp_path)) < 2:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in err, err
    assert err == "gemmspec: interrupted: the same command goes on from here\n"
    assert f"{len(_rows(tmp_path))} results measured" in out and "128 x 128 x 64  a1" in out


def test_what_the_command_says(tmp_path: Path) -> None:
    candidates(tmp_path / "k", "a1", "b2", "wrong3")
    (tmp_path / "shapes.csv").write_text("M,N,K\n128, 128, 64\n256x128x64  # twice\n256 128 64\n")
    done = call(tmp_path, "k", "--shapes", "shapes.csv", "--export", "t.json")
    assert done.returncode == 1 and done.stderr == ""
    assert "fake H200 (132 SMs, 1980 MHz, driver 580.0), torch 0, CUDA 0\n" in done.stdout
    assert "128 x 128 x 64  a1         0.9099" in done.stdout and "1.099  1.089..1.109  b2 0.998" in done.stdout
    assert "256 x 128 x 64  b2 " in done.stdout
    assert "WRONG wrong3 at 128 x 128 x 64: relative error 5.00e-01, and 6e-04 is the most" in done.stdout
    assert "6 results measured, 0 were known: tune.sqlite" in done.stdout
    data = json.loads(call(tmp_path, "k", "--shapes", "shapes.csv", "--format", "json").stdout)
    (setting,) = data["settings"]
    assert (data["measured"], data["known"]) == (0, 6)
    assert [[r["kernel"] for r in s["results"]] for s in setting["shapes"]] == [["a1", "b2"], ["b2", "a1"]]
    assert [f["kernel"] for f in setting["faults"]] == ["wrong3", "wrong3"]
    exported = read_table(tmp_path / "t.json")
    assert sorted(exported, key=repr) == sorted(read_table(tmp_path / "tune.sqlite"), key=repr)
    assert as_json(exported) == (tmp_path / "t.json").read_text() == as_json(exported[::-1])


def test_a_spec_with_errors_is_refused_with_its_codes(tmp_path: Path) -> None:
    (tmp_path / "deep.gemmspec").write_text(SPEC.replace("stages   6", "stages   9"))
    candidates(tmp_path / "k", "a1")
    done = call(tmp_path, "deep.gemmspec", "k", "--shape", "128x128x64")
    assert done.returncode == 1 and "deep.gemmspec: not measured, for it has errors (GS301)" in done.stderr
    assert "error[GS301]" in done.stderr and "a1" in done.stdout
    alone = call(tmp_path, "deep.gemmspec", "--shape", "128x128x64", gpus=0)
    assert alone.returncode == 1 and "GPU" not in alone.stderr, "nothing is left to be measured"


@pytest.mark.slow
def test_a_spec_is_compiled_once(tmp_path: Path) -> None:
    pytest.importorskip("tvm")
    from gemmspec.toolchain import assemble

    if assemble.find_nvcc() is None and assemble.find_nvrtc() is None:
        pytest.skip("no assembler")
    (tmp_path / "one.gemmspec").write_text(SPEC)
    assert call(tmp_path, "one.gemmspec", "--shape", "128x128x64").returncode == 0
    cubin = tmp_path / "build" / "hopper_n128_dynamic.cubin"
    before = cubin.stat().st_mtime_ns
    assert "0 results measured, 1 were known" in call(tmp_path, "one.gemmspec", "--shape", "128x128x64").stdout
    assert cubin.stat().st_mtime_ns == before
    (tmp_path / "one.gemmspec").write_text(SPEC.replace("stages   6", "stages   5"))
    assert "1 results measured" in call(tmp_path, "one.gemmspec", "--shape", "128x128x64").stdout
    assert cubin.stat().st_mtime_ns != before


@pytest.mark.parametrize(
    ("words", "gpus", "status", "said"),
    [
        (["k"], 1, 2, "no shape to measure: give --shape 4096x4096x4096, or --shapes FILE"),
        (["k", "--shape", "128"], 1, 2, "`128` is not of the form 4096x4096x4096"),
        (["k", "--shape", "8x8x8"], 0, 2, "cannot measure here: torch sees no CUDA device"),
        (["k", "--shape", "8x8x8", "--gpus", "2"], 2, 2, "there is no GPU 2: torch sees 2, from 0"),
        (["k", "--shape", "8x8x8", "--gpus", "x"], 2, 2, "`x` is neither all nor numbers as in 0,1"),
        (["k", "--shapes", "none.csv"], 1, 2, "none.csv: no such file"),
        (["k", "--shapes", "bad.csv"], 1, 2, "bad.csv:2: `4096 4096` is no shape: M N K are needed"),
        (["k", "--shapes", "empty.csv"], 1, 2, "empty.csv holds no shape"),
        (["none.json", "--shape", "8x8x8"], 1, 2, "cannot read none.json: No such file"),
        (["none.gemmspec", "--shape", "8x8x8"], 1, 2, "none.gemmspec: no such file"),
        (["hollow", "--shape", "8x8x8"], 1, 2, "no *.gemmspec file and no compiled kernel in folder hollow"),
        (["k", "--shape", "8x8x8", "--db", "no/t.sqlite"], 1, 2, "cannot write no/t.sqlite: No such file"),
        (["k", "--shape", "8x8x8", "--db", "bad.csv"], 1, 2, "bad.csv: file is not a database"),
        (["k", "--shape", "8x8x4"], 1, 0, "kernel `a1` takes none of these shapes"),
        (["k", "twin", "--shape", "8x8x8"], 1, 2, "kernel `a1` is another one in"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(tmp_path: Path, words: list[str], gpus: int, status: int, said: str) -> None:
    candidates(tmp_path / "k", "a1")
    (tmp_path / "hollow").mkdir()
    (tmp_path / "twin").mkdir()
    kernels.write(tmp_path / "twin", kernels.manifest("a1"), kernels.CUBIN + b"other")
    (tmp_path / "bad.csv").write_text("1 8 8\n4096 4096\n" + "and so on\n" * 99)
    (tmp_path / "empty.csv").write_text("# nothing\n")
    done = call(tmp_path, *words, gpus=gpus)
    assert done.returncode == status and said in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert (tmp_path / "bad.csv").read_text().startswith("1 8 8\n")


def result(**changes: Any) -> Result:
    values: dict[str, Any] = {
        "content": "c", "m": 8, "n": 8, "k": 8, "kernel": "a", "types": "f16 f16 f16", "fault": "", "error": 1e-4,
        "rounds": 15, "ms": 1.0, "ratio": 1.0, "low": 1.0, "high": 1.0, "at": "2026-01-01",
    }  # fmt: skip
    return Result(**(values | changes))


def test_hostile_tables_are_refused(tmp_path: Path) -> None:
    good = tmp_path / "good.sqlite"
    table = Table(good)
    table.write(SETTING, [result(content=f"{i}" * 64, m=i + 1) for i in range(300)])
    table.close()
    whole = good.read_bytes()

    def refused(data: bytes | None, said: str, to_write: str = "") -> None:
        path = tmp_path / "bad"
        path.unlink(missing_ok=True)
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(TableProblem, match=said):
            read_table(path)
        with pytest.raises(TableProblem, match=to_write or said):
            Table(path)
        assert data is None or path.read_bytes() == data, "nothing is written over"

    refused(b"hello", "neither SQLite nor JSON", "not a database")
    refused(whole[: len(whole) // 2], "malformed|damaged")
    refused(whole[:4096] + b"\xff" * 4096 + whole[8192:], "malformed|damaged")
    refused(whole[:20], "not a database|malformed|damaged|disk I/O")
    refused(
        b'{"format": 0, "settings": []}', "is of format 0, and this gemmspec reads tables of format 1", "not a database"
    )
    refused(b'{"format": 1}', "KeyError: 'settings'", "not a database")
    refused(b"[" * 100_000, "neither SQLite nor JSON", "not a database")
    for change, said in [
        ("PRAGMA user_version = 0", "is of format 0, and this gemmspec reads tables of format 1"),
        ("PRAGMA application_id = 7", "is a SQLite file of something else"),
    ]:
        good.write_bytes(whole)
        with sqlite3.connect(good) as connection:
            connection.execute(change)
        refused(good.read_bytes(), said)
    for change, said in [
        ("UPDATE result SET ms = 'soon' WHERE m = 1", "'soon' is no time"),
        ("UPDATE result SET ratio = 9e999", "inf is no time"),
        ("UPDATE result SET ms = NULL", "has neither a fault nor a time"),
        ("UPDATE setting SET sms = 'many'", "'many' is no whole number from 1"),
        ("ALTER TABLE result DROP COLUMN low", "no such column: result.low"),
    ]:
        good.write_bytes(whole)
        with sqlite3.connect(good) as connection:
            connection.execute(change)
        with pytest.raises(TableProblem, match=said):
            read_table(good)


def test_a_table_that_may_not_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(TableProblem, match="Is a directory"):
        read_table(tmp_path)
    with pytest.raises(TableProblem, match=r"cannot read .*none: No such file"):
        read_table(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    path = tmp_path / "t.sqlite"
    Table(path).close()
    if os.geteuid() == 0:
        pytest.skip("permissions do not hold for root")
    path.chmod(0o400)
    assert read_table(path) == []
    with pytest.raises(TableProblem, match=r"cannot write .*: Permission denied"):
        Table(path)
    path.chmod(0)
    with pytest.raises(TableProblem, match=r"cannot read .*: Permission denied"):
        read_table(path)


def test_a_table_of_several_settings(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.sqlite")
    other = Setting("fake H200", 132, 1980, "590.0", "torch 0, CUDA 0")
    table.write(SETTING, [result(), result(m=16)])
    table.write(other, [result()])
    table.write(SETTING, [result(ratio=2.0)])
    assert [r.ratio for r in table.results(SETTING)] == [2.0, 1.0] and table.results(other) == [result()]
