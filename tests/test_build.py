"""Building: CUDA text, cubin and manifest of kernels, the command, the API, and what stands in the way of a build."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from kernels import CASES, KERNELS

import gemmspec
from gemmspec import cli
from gemmspec.audit import Difference
from gemmspec.codegen import lower
from gemmspec.driver import check
from gemmspec.files import FileProblem
from gemmspec.protocol.program import Protocol
from gemmspec.runtime.manifest import Tile, manifest_of
from gemmspec.source import SourceFile
from gemmspec.toolchain import Artifact, BuildProblem, Emit, NotAsProved, artifact, assemble, build
from gemmspec.toolchain.manifest import Scalar, TensorMap
from gemmspec.toolchain.output import write_together
from gemmspec.toolchain.start import light_frames
from gemmspec.toolchain.tvm_kernel import prim_func

ROOT = Path(__file__).parent.parent
V7, V8, V9 = (ROOT / "specs" / f"{name}.gemmspec" for name in ("v7", "v8", "v9"))
# The figures of the notes that the kernels were measured with, plus 10.
MOST_REGISTERS = {"v7": 150, "v8": 160, "v9": 89}
# A few of each family: bench/sweep.py has them all.
SAMPLE = (
    "bf16-to-f32", "k-128", "stages-1", "two-by-two", "buffers-3", "ragged-k-128", "dynamic-chunk-128",
    "cluster-2x2-multicast", "single-two-consumers", "hopper-multicast-b", "hopper-dynamic", "two-producers",
    "late-commit", "dynamic-row-by-row", "hopper-row-by-row", "one-row",
    "hopper-one-row",
)  # fmt: skip
needs_nvcc = pytest.mark.skipif(assemble.find_nvcc() is None, reason="no nvcc")


@pytest.fixture(scope="session", autouse=True)
def tvm() -> None:
    """Import TVM as a library's user does, so that the command does not start it its own way in this process."""
    import tvm  # noqa: F401


def protocol_of(text: str) -> Protocol:
    protocol = check(SourceFile("<test>", text)).protocol
    assert protocol is not None
    return protocol


def built(text: str, *emit: Emit) -> Artifact:
    return build(protocol_of(text), text, emit)


def run(*words: str) -> int:
    """Run a command in this process and return its exit status."""
    status = cli.gemmspec.main(list(words), prog_name="gemmspec", standalone_mode=False)
    assert isinstance(status, int)
    return status


def fake_nvcc(folder: Path, script: str) -> None:
    nvcc = folder / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    nvcc.chmod(0o755)


@needs_nvcc
@pytest.mark.parametrize("name", MOST_REGISTERS)
def test_shipped_kernels_assemble(name: str) -> None:
    text = (ROOT / "specs" / f"{name}.gemmspec").read_text(encoding="utf-8")
    manifest = built(text, Emit.CUBIN).manifest
    assert manifest is not None and manifest.assembled is not None
    assert manifest.assembled.registers <= MOST_REGISTERS[name]
    assert manifest.assembled.spill_store_bytes == manifest.assembled.spill_load_bytes == 0
    assert manifest.assembled.stack_bytes == 0


@pytest.mark.parametrize("name", SAMPLE)
def test_sample_of_the_sweep(name: str) -> None:
    """TVM takes the module, and the audit finds nothing: `build` raises where it does."""
    made = built(KERNELS[name], Emit.CUDA)
    assert made.cuda is not None and "__global__" in made.cuda


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.refused])
def test_refused(name: str) -> None:
    case = CASES[name]
    assert {d.code for d in check(SourceFile("<test>", case.text)).report.errors} == {case.refused}


# -- the manifest --------------------------------------------------------------------------------------------------


def test_manifest_of_v9() -> None:
    manifest = built(V9.read_text(encoding="utf-8"), Emit.CUDA).manifest
    assert manifest is not None
    launch = manifest.launch
    assert launch.kernel == "hgemm_v9_kernel"
    assert (launch.grid, launch.block, launch.cluster) == ((148, 1, 1), (384, 1, 1), (2, 1, 1))
    assert launch.shared_bytes == 230400
    maps = [a for a in launch.arguments if isinstance(a, TensorMap)]
    assert [m.tensor for m in maps] == ["A", "B", "D"]
    assert all(m.dims == (4096, 4096) and m.strides == (8192,) and m.box == (64, 128) for m in maps)
    assert [t.shape for t in manifest.tensors] == [(4096, 4096)] * 3
    # 512 x 256 by the two CTAs of a pair; each loads 256 rows of A, and its half of B's.
    assert manifest.tile == Tile(m=512, n=256, k=64, a_rows=256, b_rows=128)
    read = manifest_of(json.loads(manifest.text), "here")
    assert read == manifest_of(manifest.data, "here") and (read.grid, read.block) == (launch.grid, launch.block)


def test_manifest_of_dynamic_sizes() -> None:
    manifest = built(KERNELS["dynamic"], Emit.CUDA).manifest
    assert manifest is not None
    assert manifest.sizes == {"M": None, "N": None, "K": None}
    maps = {a.tensor: a for a in manifest.launch.arguments if isinstance(a, TensorMap)}
    assert maps["A"].dims == ("K", "M") and maps["D"].dims == ("N", "M")
    assert [str(s).replace(" ", "") for s in (*maps["A"].strides, *maps["D"].strides)] == ["K*2", "N*2"]
    scalars = [a.value for a in manifest.launch.arguments if isinstance(a, Scalar)]
    assert sorted(map(str, scalars)) == ["K", "M", "N"]


def test_light_frames_change_nothing(tmp_path: Path) -> None:
    module = lower(protocol_of(V9.read_text(encoding="utf-8")))
    path = tmp_path / "kernel.py"
    path.write_text(module.source, encoding="utf-8")
    plain = prim_func(path, module.name, (4096, 4096, 4096)).script()
    with light_frames():
        assert prim_func(path, module.name, (4096, 4096, 4096)).script() == plain


# -- the command ---------------------------------------------------------------------------------------------------


@needs_nvcc
def test_compile_in_a_process_of_its_own(tmp_path: Path) -> None:
    """It starts TVM its own way: the CUDA text is the same as here."""
    words = [sys.executable, "-m", "gemmspec.cli", "compile", str(V9), "--out", str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names = {p.name for p in (tmp_path / "out").iterdir()}
    assert names == {"hgemm_v9.py", "hgemm_v9.cu", "hgemm_v9.cubin", "hgemm_v9.json"}
    assert "no spills" in done.stdout and str(tmp_path / "out" / "hgemm_v9.cubin") in done.stdout
    assert (tmp_path / "out" / "hgemm_v9.cu").read_text() == built(V9.read_text(), Emit.CUDA).cuda
    assert (tmp_path / "out" / "hgemm_v9.py").read_text() == (ROOT / "tests/golden/tirx/hgemm_v9.py").read_text()
    assert json.loads((tmp_path / "out" / "hgemm_v9.json").read_text())["assembled"]["registers"] <= 89


QUICK = """
import sys
absent = dict.fromkeys(("torch", "ml_dtypes", "cuda.bindings"))
sys.modules.update(absent)
import tvm_ffi
for name in absent:
    del sys.modules[name]
raised = []
told = tvm_ffi.core._WITH_APPEND_BACKTRACE
tvm_ffi.core._WITH_APPEND_BACKTRACE = lambda error, trace: raised.append(error) or told(error, trace)
from gemmspec.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
wanted = "torch", "pydantic", "tvm.relax.op", "tvm.runtime.disco", "tvm.s_tir.dlight.gpu", "tvm.backend.trn", "lark"
print(raised, [name for name in wanted if name in sys.modules])
"""


def test_a_compile_loads_what_it_needs_and_no_more(tmp_path: Path) -> None:
    """The first error in TVM's library costs a third of a second, whoever catches it."""
    words = [sys.executable, "-c", QUICK, "compile", str(V7), "--emit", "cuda", "--out", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[] []"
    assert (tmp_path / "hgemm_v7.cu").read_text() == built(V7.read_text(), Emit.CUDA).cuda


START_WITHOUT = """
import importlib, sys
load, failed = importlib.import_module, []
def once(name, *args, **options):
    if name == "tvm.s_tir" and not failed:
        failed.append(name)
        raise ImportError("moved")
    return load(name, *args, **options)
importlib.import_module = once
from gemmspec.toolchain.start import quick_tvm
quick_tvm()
assert failed and sys.modules["tvm.relax"].__file__
import gemmspec
print(gemmspec.lower(gemmspec.load(sys.argv[1])).prim_func.script())
"""


def test_a_quick_start_that_fails_is_a_plain_one() -> None:
    words = [sys.executable, "-c", START_WITHOUT, str(V7)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip("\n") == gemmspec.lower(gemmspec.load(V7)).prim_func.script().rstrip("\n")


def test_sizes_from_the_command_line(tmp_path: Path) -> None:
    words = ("--size", "M=512", "--size", "K=64", "--emit", "cuda")
    assert run("compile", str(V9), *words, "--out", str(tmp_path)) == 0
    assert json.loads((tmp_path / "hgemm_v9.json").read_text())["sizes"] == {"M": 512, "N": 4096, "K": 64}


@pytest.mark.parametrize(("emit", "suffixes"), [("tirx", {".py"}), ("cuda", {".py", ".cu", ".json"})])
def test_emit(emit: str, suffixes: set[str], tmp_path: Path) -> None:
    assert run("compile", str(V7), "--emit", emit, "--out", str(tmp_path)) == 0
    assert {p.suffix for p in tmp_path.iterdir()} == suffixes


def test_emit_of_something_else(tmp_path: Path) -> None:
    import click

    with pytest.raises(click.BadParameter, match="`ptx` is none of tirx"):
        run("compile", str(V7), "--emit", "ptx", "--out", str(tmp_path))


def test_errors_block(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.gemmspec"
    wrong.write_text(V9.read_text().replace("arrivals 256", "arrivals 128"), encoding="utf-8")
    assert run("compile", str(wrong), "--out", str(tmp_path / "out")) == 1
    assert not (tmp_path / "out").exists()
    assert "error[GS1" in capsys.readouterr().out


def test_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.gemmspec"
    wrong.write_text(V9.read_text().replace("arrivals 256", "arrivals 128"), encoding="utf-8")
    assert run("compile", str(wrong), "--force", "--emit", "cuda", "--out", str(tmp_path / "out")) == 0
    assert "ld2mma.init(128)" in (tmp_path / "out" / "hgemm_v9.py").read_text()
    assert "WARNING" in capsys.readouterr().err


def test_two_kernels_of_one_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.gemmspec"
    other.write_text(V7.read_text(encoding="utf-8"), encoding="utf-8")
    assert run("compile", str(V7), str(other), "--emit", "tirx", "--out", str(tmp_path / "out")) == 2
    assert "would be written over" in capsys.readouterr().err


# -- what stands in the way ----------------------------------------------------------------------------------------


def test_no_assembler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(assemble, "find_nvcc", lambda: None)
    monkeypatch.setattr(assemble, "find_nvrtc", lambda: None)
    assert run("compile", str(V7), "--out", str(tmp_path)) == 0
    assert {p.suffix for p in tmp_path.iterdir()} == {".py", ".cu", ".json"}
    assert "no cubin: no nvcc" in capsys.readouterr().out


@pytest.mark.skipif(assemble.find_nvrtc() is None, reason="no NVRTC")
def test_nvrtc_where_there_is_no_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble, "find_nvcc", lambda: None)
    made = built(V7.read_text(encoding="utf-8"), Emit.CUBIN)
    assert made.cubin is not None and made.manifest is not None and made.manifest.assembled is not None
    assert made.manifest.assembled.tool.startswith("nvrtc") and made.manifest.assembled.registers > 0


def test_nvcc_of_cuda_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nvcc(tmp_path, "exit 1")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert assemble.find_nvcc() == tmp_path / "bin" / "nvcc"
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("PATH", "")
    assert assemble.find_nvcc() is None


def test_nvcc_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fake_nvcc(tmp_path / "cuda", "echo 'kernel.cu(3): warning: one'; echo 'ptxas fatal: no such arch' >&2; exit 3")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert run("compile", str(V7), "--out", str(tmp_path / "out")) == 1
    assert "ptxas fatal: no such arch" in capsys.readouterr().err
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["hgemm_v7.log"]
    assert "warning: one" in (tmp_path / "out" / "hgemm_v7.log").read_text()


def test_nvcc_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nvcc(tmp_path, "")
    (tmp_path / "bin" / "nvcc").write_bytes(b"\x7fELF not really")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert run("compile", str(V7), "--out", str(tmp_path / "out")) == 2
    assert not (tmp_path / "out").exists()


def test_a_kernel_that_is_not_what_was_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(artifact, "audit", lambda *_: (Difference("producer", "wait a[0]", "nothing", None),))
    with pytest.raises(NotAsProved, match="the protocol has `wait a"):
        built(V7.read_text(encoding="utf-8"), Emit.TIRX)
    assert run("compile", str(V7), "--out", str(tmp_path / "out")) == 1
    assert not (tmp_path / "out").exists()
    assert "a bug in gemmspec" in capsys.readouterr().err


def test_a_fault_that_shows_in_every_warp_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        Difference(f"prologue of CTA {cta}", "sync, by a whole warp", f"warp {w} of warpgroup {g}: nothing", None)
        for cta in range(2)
        for g in range(3)
        for w in range(4)
    ]
    found += [Difference("producer, CTA 0", f"wait a[{i}]", "nothing", None) for i in range(10)]
    monkeypatch.setattr(artifact, "audit", lambda *_: tuple(found))
    with pytest.raises(NotAsProved) as caught:
        built(V7.read_text(encoding="utf-8"), Emit.TIRX)
    _, *lines = str(caught.value).splitlines()
    assert lines[0] == (
        "  prologue of CTA 0: the protocol has `sync, by a whole warp`, the kernel has "
        "`warp 0 of warpgroup 0: nothing` (and so at 23 more)"
    )
    assert [line.split("`")[1] for line in lines[1:8]] == [f"wait a[{i}]" for i in range(7)]
    assert lines[8:] == ["  and 3 more"]


def test_tvm_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    module = lower(protocol_of(V7.read_text(encoding="utf-8")))
    from dataclasses import replace

    broken = replace(module, source=module.source.replace("tma2mma.init(1)", "tma2mma.start(1)"))
    monkeypatch.setattr(artifact, "lower", lambda *_: broken)
    with pytest.raises(BuildProblem, match=r"TVM does not read hgemm_v7\.py"):
        built(V7.read_text(encoding="utf-8"), Emit.TIRX)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(FileProblem, match="permission denied"):
        write_together(tmp_path / "out", {"a": "1"})


def test_files_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with pytest.raises(FileProblem, match="b: it is a folder"):
        write_together(tmp_path, {"a": "1", "b": "2"})
    assert [p.name for p in tmp_path.iterdir()] == ["b"]
    (tmp_path / "file").write_text("")
    with pytest.raises(FileProblem):
        write_together(tmp_path / "file", {"a": "1"})
    assert [p.name for p in write_together(tmp_path / "deep" / "er", {"a": "1", "c": b"2"})] == ["a", "c"]
