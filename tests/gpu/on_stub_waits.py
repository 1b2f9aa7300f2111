"""Tests of debug builds on the stub of libcuda: `test_waits.py` runs this file in a process that has it."""

from __future__ import annotations

import array
from pathlib import Path

import pytest
import stub_kernels as kernels
from on_stub import assert_right, problem

from gemmspec import runtime
from gemmspec.runtime import ArgumentProblem, HangError, Kernel, LoadProblem
from gemmspec.runtime.waits import HEAD, WORDS

ROWS, CLUSTERS, SIZE = 2, 3, 2
BODY = '[["for","tile",null,0,[],[["for","k",null,0,[0],[["wait","%s",[0,0,1,0,0],%d,%d],%s]]]]]'
LAND = '["land","full",[0,0,1,0,0],100,[[0],[1]]],["arrive","full",[0,0,1,0,0],1,100,[[0],[1]]]'
FREE = '["arrive","empty",[0,0,1,0,0],1,0,[[0],[1]]]'


def waits() -> dict[str, object]:
    """Return the table of a ring of 2 stages, in clusters of 2 CTAs that do not know of each other."""

    def role(name: str, row: int, body: str) -> dict[str, object]:
        return {"name": name, "row": row, "instances": 1, "ctas": [0, 1], "depths": [2], "body": body}

    def site(role: str, barrier: str) -> dict[str, object]:
        text = f"wait {barrier}"
        return {"role": role, "barrier": barrier, "line": 7, "column": 1, "length": len(text), "text": text}

    return {
        "seconds": 2.0, "records": "gemmspec_waits", "rows": ROWS, "spec": "x.gemmspec", "cluster": SIZE,
        "clusters": CLUSTERS, "tile": [128, 64, 64],
        "barriers": [
            {"name": "full", "arrivals": 1, "sources": ["loader"]},
            {"name": "empty", "arrivals": 1, "sources": ["math"]},
        ],
        "roles": [role("loader", 0, BODY % ("empty", 1, 0, LAND)), role("math", 1, BODY % ("full", 0, 1, FREE))],
        "sites": [site("loader", "empty"), site("math", "full")],
    }  # fmt: skip


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that a launch on the stub fills the array from: no wait gave up."""
    path = tmp_path / "records"
    path.write_bytes(bytes(4 * (HEAD + CLUSTERS * SIZE * ROWS * WORDS)))
    monkeypatch.setenv("STUB_RECORDS", str(path))
    return path


@pytest.fixture
def kernel(tmp_path: Path, words: Path) -> Kernel:
    return runtime.load(kernels.write(tmp_path, kernels.manifest(format=2, waits=waits())))


def test_a_launch_that_ends_is_waited_for(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_LOG", str(tmp_path / "calls"))
    a, b, d = problem()
    kernel(a, b, d)
    assert_right(a, b, d)
    kernel.bind(a, b, d)()
    calls = [line for line in (tmp_path / "calls").read_text().splitlines() if line.startswith(("clear", "la", "wait"))]
    one = ["clear", "launch", "launch", "wait"]
    assert [line.split()[0] for line in calls] == one * 2


def test_a_stop_is_an_error_with_all_that_is_known(kernel: Kernel, words: Path) -> None:
    found = array.array("I", words.read_bytes())
    found[0] = 1
    for row, record in ((0, [1, 0, 1, 0, 0, 3, 3, 2_000_000]), (1, [2, 1, 1, 0, 0, 1, 1, 1_900_000])):
        start = HEAD + (2 * ROWS + row) * WORDS  # cluster 1, CTA 0
        found[start : start + WORDS] = array.array("I", record)
    words.write_bytes(found.tobytes())
    with pytest.raises(HangError) as raised:
        kernel(*problem(m=1000, n=640, k=512))
    error = raised.value
    assert error.kernel == "gemm" and error.stop.cluster == 1
    assert [(w.at.role, w.at.cta, w.barrier, w.slot, w.expired) for w in error.waits] == [
        ("loader", 0, "empty", 1, True), ("math", 0, "full", 1, False),
    ]  # fmt: skip
    text = str(error)
    assert text.startswith("kernel `gemm` stopped: a wait was not over after 2 s\nhang: `loader` of CTA 0 waits for")
    assert "x.gemmspec:7:1" in text and "cluster 1 (CTAs 2..3 of the grid)" in text


def test_a_capture_is_refused(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_CAPTURING", "1")
    with pytest.raises(ArgumentProblem, match="cannot be captured into a CUDA graph"):
        kernel(*problem())


def test_another_cubin_is_refused(kernel: Kernel, tmp_path: Path, words: Path) -> None:
    other = {**waits(), "clusters": CLUSTERS + 1}
    kernel = runtime.load(kernels.write(tmp_path, kernels.manifest(name="other", format=2, waits=other)))
    with pytest.raises(LoadProblem, match="not the one that its manifest was made with"):
        kernel(*problem())
