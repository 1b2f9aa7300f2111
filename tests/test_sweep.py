"""Sweeps: variants of texts, ranking, output formats, processes, and a Dask cluster that loses a worker."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gemmspec import cli, sweep
from gemmspec.driver import check
from gemmspec.source import SourceFile
from gemmspec.sweep.variations import MOST_COMBINATIONS
from gemmspec.syntax.format import format_source

ROOT = Path(__file__).parent.parent
V9 = ROOT / "specs" / "v9.gemmspec"
TEXT = V9.read_text(encoding="utf-8")
SMALL = ("--size", "M=1024", "--size", "N=1024", "--size", "K=256")


def made(text: str, *words: str) -> list[sweep.Variant]:
    return sweep.variants(SourceFile("a", text), [sweep.read_variation(w) for w in words])


def changed(text: str, *words: str) -> list[str]:
    """Return the lines that the only variant has and the text has not."""
    (variant,) = made(text, *words)
    old = text.splitlines()
    return [line for line in variant.text.splitlines() if line not in old]


@pytest.mark.parametrize(
    "words, values",
    [
        ("stages=2..4", ("2", "3", "4")),
        ("block.n=64..256..64", ("64", "128", "192", "256")),
        (" chunk = 32, 64 ", ("32", "64")),
        ("stages=2..3,3,8", ("2", "3", "8")),
        ("release=read,store", ("read", "store")),
    ],
)
def test_variations_are_read(words: str, values: tuple[str, ...]) -> None:
    assert sweep.read_variation(words).values == values


@pytest.mark.parametrize(
    "words", ["stages", "=2", "stages=", "stages=4..2", "stages=2..8..0", "stages=a b", "stages=1..9999999"]
)
def test_what_is_no_variation_is_refused(words: str) -> None:
    with pytest.raises(sweep.VariationError):
        sweep.read_variation(words)


def test_numbers_are_put_where_they_stand() -> None:
    assert changed(TEXT, "stages=3") == ["stages   3"]
    assert changed(TEXT, "block.k=32")[0].startswith("block    128 x 128 x 32 ")
    assert changed(TEXT, "cluster.m=4")[0].startswith("cluster  4 x 1 ")
    assert changed(TEXT, "ctas=100", "group=4") == ["schedule persistent ctas 100 group 4"]
    assert changed(TEXT, "chunk=32")[0].startswith("role writeback = epilogue  on warpgroups 0..1 chunk 32  #")


def test_what_was_left_out_is_added() -> None:
    assert changed(TEXT, "accumulators=2") == ["accumulators 2"]
    assert changed(TEXT, "writeback.buffers=2")[0].startswith(
        "role writeback = epilogue  on warpgroups 0..1 chunk 64 buffers 2"
    )
    assert "chunk 64 release after read" in changed(TEXT, "release=read")[0]
    bare = TEXT.replace("schedule persistent ctas 148 group 8\n", "").replace("stages   4\n", "")
    assert changed(bare, "group=4", "stages=2") == ["schedule persistent group 4", "stages 2"]


def test_variants_are_read_back_as_they_were_meant() -> None:
    for variant in made(TEXT, "stages=2..3", "chunk=32,64", "release=read,store", "M=2048"):
        spec = check(SourceFile("a", variant.text), dict(variant.sizes)).spec
        assert spec is not None
        values = dict(variant.values)
        role = spec.role("writeback")
        assert role.chunk and role.release
        assert str(spec.stages.value) == values["stages"]
        assert str(role.chunk.value) == values["chunk"]
        assert role.release.value.value == values["release"]
        assert spec.sizes[0].fixed == 2048
        assert format_source(SourceFile("a", variant.text))


@pytest.mark.parametrize(
    "words",
    [("stagez=2",), ("nobody.chunk=2",), ("stages=2", "stages=3"), ("M=big",), ("stages=1..200", "group=1..200")],
)
def test_variants_that_cannot_be_made_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(sweep.VariationError):
        made(TEXT, *words)
    assert MOST_COMBINATIONS < 200 * 200


def jobs(count: int) -> list[sweep.Job]:
    sizes = (("M", 1024), ("N", 1024), ("K", 256))
    variants = made(TEXT, "stages=1..4", f"group=1..{-(-count // 4)}")[:count]
    return [sweep.Job(i, v.values, "a", v.text, sizes, None) for i, v in enumerate(variants)]


def test_processes_find_what_one_does() -> None:
    todo = jobs(8)
    here = [sweep.run_job(job) for job in todo]
    assert sorted(sweep.run_here(todo, 2), key=lambda t: t.number) == here
    assert sweep.ranked(here)[0] == sorted(here, key=lambda t: (t.milliseconds or 0, t.number))


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> object:
    monkeypatch.setattr("sys.argv", ["gemmspec", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


def test_the_fastest_comes_first_and_what_does_not_fit_has_its_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vary = ("sweep", str(V9), "--vary", "stages=3..4", "--vary", "chunk=64,128", *SMALL)
    assert run(monkeypatch, *vary, "--format", "json") == 0
    result = json.loads(capsys.readouterr().out)
    times = [entry["milliseconds"] for entry in result["ranked"]]
    assert len(times) == 3 and times == sorted(times)
    assert {"stages": 4, "chunk": 64} in [entry["values"] for entry in result["ranked"]]
    (rejected,) = result["rejected"]
    assert rejected["values"] == {"stages": 4, "chunk": 128}
    assert [e["code"] for e in rejected["errors"]] == ["GS301"]

    assert run(monkeypatch, *vary, "--format", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["rank"] for row in rows] == ["1", "2", "3", ""]
    assert rows[-1]["codes"] == "GS301" and rows[-1]["stages"] == "4"

    assert run(monkeypatch, *vary, "--top", "2") == 0
    out = capsys.readouterr().out
    assert "and 1 slower ones" in out
    assert "1 of 4 combinations is refused:\n  stages=4 chunk=128  GS301" in out


def test_nothing_that_fits_is_status_1_and_wrong_usage_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "sweep", str(V9), "--vary", "stages=9") == 1
    assert run(monkeypatch, "sweep", str(V9), "--vary", "nothing=9") == 2
    monkeypatch.setattr("gemmspec.sweep.run.CONNECT_SECONDS", 0.5)
    assert run(monkeypatch, "sweep", str(V9), "--vary", "stages=2", "--dask", "tcp://127.0.0.1:1") == 1
    assert "Dask" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")
@pytest.mark.parametrize("wait", [0.0, 1.5])
def test_an_interrupt_ends_it_cleanly(wait: float) -> None:
    command = [sys.executable, "-m", "gemmspec.cli", "sweep", str(V9), "--vary", "group=1..400", "--jobs", "2"]
    # A test run in the background may have been started with interrupts ignored, and children inherit that.
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    # Two workers, and the tracker of their resources.
    while process.poll() is None and len(children.read_text().split()) < 3:
        time.sleep(0.05)
    time.sleep(wait)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err


@pytest.mark.slow
def test_a_dask_cluster_that_loses_a_worker_loses_no_job() -> None:
    distributed: Any = pytest.importorskip("distributed")
    todo = jobs(32)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        pids = [nanny.pid for nanny in cluster.workers.values()]
        tried: list[sweep.Tried] = []
        for result in sweep.run_on_dask(todo, cluster.scheduler_address):
            tried.append(result)
            if len(tried) == 6:
                os.kill(pids[0], signal.SIGKILL)
        assert pids[0] not in [nanny.pid for nanny in cluster.workers.values()]
    assert sorted(t.number for t in tried) == list(range(len(todo)))
    assert all(t.milliseconds or t.codes for t in tried)


def test_a_misspelled_property_gets_the_one_that_was_meant() -> None:
    with pytest.raises(sweep.VariationError, match=r"`stage` cannot be varied; .*; did you mean stages\?"):
        made(TEXT, "stage=2..6")
