"""Tests of the runtime and of the C launcher. Launches are tried on a stub of libcuda, built here by the C compiler."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gemmspec import runtime
from gemmspec.cli.bench import command as bench
from gemmspec.runtime import LoadProblem, arithmetic
from gemmspec.runtime.manifest import Manifest, manifest_of
from gemmspec.runtime.recent import Recent
from gemmspec.toolchain import BuildProblem
from gemmspec.toolchain.clib import build_library, write_c

GPU = Path(__file__).parent / "gpu"
sys.path.insert(0, str(GPU))

import stub_kernels as kernels  # noqa: E402

needs_cc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")


@pytest.fixture(scope="session")
def stub(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process whose libcuda.so.1 is the stub."""
    folder = tmp_path_factory.mktemp("stub")
    kernels.build_stub(folder)
    return {**os.environ, "LD_LIBRARY_PATH": str(folder), "PYTHONPATH": str(GPU)}


@needs_cc
def test_launches_on_the_stub(stub: dict[str, str]) -> None:
    pytest.importorskip("cuda.bindings.driver", exc_type=ImportError)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(GPU / "on_stub.py")]
    done = subprocess.run(command, env=stub, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_cc
def test_the_example_runs(stub: dict[str, str], tmp_path: Path) -> None:
    include = next((p for p in Path("/usr/local").glob("cuda*/include") if (p / "cuda.h").is_file()), None)
    if include is None:
        pytest.skip("no cuda.h")
    sources = write_c(_manifest(kernels.manifest("example")), kernels.CUBIN)
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    stub_library = f"{stub['LD_LIBRARY_PATH']}/libcuda.so.1"
    command = [
        "gcc",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{include}",
        "example.c",
        "example_example.c",
        stub_library,
    ]
    subprocess.run([*command, "-ldl", "-lpthread", "-lm", "-o", "run"], cwd=tmp_path, check=True)
    done = subprocess.run(
        ["./run", "40", "16", "24"], cwd=tmp_path, env=stub, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "40 x 16 x 24: 0 of 640 elements wrong" in done.stdout, done.stdout + done.stderr


@needs_cc
def test_the_driver_s_types_are_those_of_cuda_h(tmp_path: Path) -> None:
    include = next((p for p in Path("/usr/local").glob("cuda*/include") if (p / "cuda.h").is_file()), None)
    if include is None:
        pytest.skip("no cuda.h")
    (tmp_path / "check.c").write_text(
        """
        #include <cuda.h>
        #include <stddef.h>
        _Static_assert(sizeof(CUtensorMap) == 128 && _Alignof(CUtensorMap) <= 128, "");
        _Static_assert(sizeof(CUlaunchAttribute) == 72 && offsetof(CUlaunchAttribute, value) == 8, "");
        _Static_assert(sizeof(CUlaunchConfig) == 56 && offsetof(CUlaunchConfig, hStream) == 32, "");
        _Static_assert(offsetof(CUlaunchConfig, attrs) == 40 && offsetof(CUlaunchConfig, numAttrs) == 48, "");
        _Static_assert(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION == 4 && CU_STREAM_CAPTURE_MODE_RELAXED == 2, "");
        _Static_assert(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES == 8, "");
        _Static_assert(CU_TENSOR_MAP_DATA_TYPE_FLOAT16 == 6 && CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 == 9, "");
        _Static_assert(CU_TENSOR_MAP_DATA_TYPE_FLOAT32 == 7 && CUDA_ERROR_INVALID_CONTEXT == 201, "");
        _Static_assert(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED == 303 && CUDA_ERROR_NOT_FOUND == 500, "");
        """
    )
    subprocess.run(["gcc", "-std=gnu11", f"-I{include}", "-c", "check.c", "-o", "check.o"], cwd=tmp_path, check=True)


@needs_cc
def test_the_c_compiles_without_a_word_also_as_c_plus_plus(tmp_path: Path) -> None:
    sources = write_c(_manifest(kernels.manifest("quiet")), kernels.CUBIN)
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-c"]
    subprocess.run(["gcc", "-std=gnu11", *strict, "quiet.c", "-o", "quiet.o"], cwd=tmp_path, check=True)
    (tmp_path / "use.cpp").write_text('#include "quiet.h"\nauto f = quiet;\n')
    if shutil.which("g++"):
        subprocess.run(["g++", *strict, "use.cpp", "-o", "use.o"], cwd=tmp_path, check=True)
    assert build_library("quiet", sources).startswith(b"\x7fELF")


def test_a_name_that_c_keeps_is_refused() -> None:
    with pytest.raises(BuildProblem, match="`switch` cannot be the name of a function in C"):
        write_c(_manifest(kernels.manifest("switch")), kernels.CUBIN)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("K", 200), ("K * 2", 400), ("M + 127", 427), ("(M + 127) // 128", 3), ("T.truncdiv(M - 301, 2)", 0),
        ("(M - 301) // 2", -1), ("(M - 301) % 128", 127), ("T.truncmod(M - 301, 128)", -1), ("-M", -300),
        ("T.min(M, K)", 200), ("max(M, K)", 300), ("7", 7),
    ],
)  # fmt: skip
def test_expressions_over_sizes(text: str, expected: int) -> None:
    number = arithmetic.parse(text)
    sizes = {"M": 300, "K": 200}
    assert arithmetic.value(number, sizes) == expected
    c = arithmetic.c_text(number, {"M": "m", "K": "k"})
    helpers = {"floor_div": lambda a, b: a // b, "floor_mod": lambda a, b: a % b, "least": min, "most": max}
    if " / " not in c and not text.startswith("T.truncmod"):
        assert eval(c.replace("(int64_t)", ""), helpers | {"m": 300, "k": 200}) == expected


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "K.real", "K if M else 0", "K ** 9", "K, M", "", "T.exp(K, K)", "1.5", "True", "K" * 4 + "("],
)
def test_what_is_no_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(LoadProblem):
        arithmetic.parse(text)
    with pytest.raises(LoadProblem):
        arithmetic.parse("-" * 100 + "K")


def test_a_manifest_is_read_or_refused(tmp_path: Path) -> None:
    path = kernels.write(tmp_path, kernels.manifest())
    for way in (path, str(path), path.with_suffix(""), path.with_suffix(".cubin")):
        kernel = runtime.load(way)
        assert kernel.name == "gemm" and kernel.manifest.capability == (9, 0)
    assert repr(kernel) == "<gemmspec kernel gemm for sm_90a: M dynamic, N dynamic, K dynamic>"
    for change, said in [
        ({"format": 3}, "is of format 3, and this gemmspec reads formats 1 and 2 .a debug build.: compile the spec"),
        ({"format": None}, "is of format None"),
        ({"format": 2}, "format 2 with no table of waits"),
        ({"waits": {}}, "format 1 with a table of waits"),
        ({"format": 2, "waits": {}}, "is no manifest of a kernel .KeyError"),
        ({"launch": {}}, "is no manifest of a kernel"),
        ({"sizes": {"M": 1, "N": 1, "L": 1}}, "uses a size `K`"),
        ({"tensors": []}, "its tensors are not A, B, D"),
        ({"tile": {"m": 0, "n": 1, "k": 1, "a_rows": 1, "b_rows": 1}}, "a tile of 0 x 1 x 1"),
    ]:
        kernels.write(tmp_path, kernels.manifest() | change)
        with pytest.raises(LoadProblem, match=said):
            runtime.load(path)
    path.write_text("{")
    with pytest.raises(LoadProblem, match="is no manifest"):
        runtime.load(path)
    kernels.write(tmp_path, kernels.manifest(), cubin=b"#!/bin/sh")
    with pytest.raises(LoadProblem, match="is no cubin"):
        runtime.load(path)
    with pytest.raises(LoadProblem, match=r"cannot read .*none\.json: No such file"):
        runtime.load(tmp_path / "none")


def test_the_manifest_is_the_one_that_the_toolchain_writes() -> None:
    """The two sides of the format name the same fields."""
    from gemmspec.runtime.manifest import Tile
    from gemmspec.toolchain.manifest import Launch, Scalar, Tensor, TensorMap
    from gemmspec.toolchain.manifest import Manifest as Made

    def part(data: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in data.items() if name not in ("kind", "format")}

    data = kernels.manifest()
    launch = data["launch"]
    arguments = (Scalar(**part(a)) if a["kind"] == "int32" else TensorMap(**part(a)) for a in launch["arguments"])
    made = Made(**{
        **part(data),
        "tensors": tuple(Tensor(**t) for t in data["tensors"]),
        "launch": Launch(**{**launch, "arguments": tuple(arguments)}),
        "tile": Tile(**data["tile"]),
    })  # fmt: skip
    assert json.loads(made.text) == data
    assert write_c(made, kernels.CUBIN) == write_c(_manifest(data), kernels.CUBIN)
    read = manifest_of(made.data, "here")
    assert read.tile is not None and made.tile is not None
    assert dataclasses.asdict(read.tile) == dataclasses.asdict(made.tile)
    before = {key: part for key, part in kernels.manifest().items() if key != "tile"}
    assert manifest_of(before, "here").tile is None, "manifests of an older gemmspec are read"


def test_the_runtime_needs_nothing_of_what_compiles() -> None:
    code = (
        "import sys, gemmspec.runtime, gemmspec.runtime.measure\n"
        "heavy = {'tvm', 'lark', 'pydantic', 'torch', 'cuda', 'numpy'}\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & heavy))\n"
        "print(sorted(name for name in sys.modules if name.startswith('gemmspec.') and '.runtime' not in name))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]


def test_without_a_driver_a_launch_says_so(tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings.driver", exc_type=ImportError)
    if shutil.which("nvidia-smi"):
        pytest.skip("there is a driver")
    kernel = runtime.load(kernels.write(tmp_path, kernels.manifest()))
    with pytest.raises(LoadProblem, match="there is no CUDA driver on this machine"):
        kernel.function(0)


def test_what_is_used_last_stays() -> None:
    table: Recent[int, str] = Recent(2)
    table.put(1, "a")
    table.put(2, "b")
    assert table.get(1) == "a"
    table.put(3, "c")
    assert (table.get(1), table.get(2), table.get(3), len(table)) == ("a", None, "c", 2)


@needs_cc
@pytest.mark.parametrize(
    "script",
    [
        "check.py --largest 128 --repeats 10",
        "race.py --shapes 8 --rounds 2",
        "tune.py --shapes 8,16,24,32 --rounds 2 --patience 200",
    ],
)
def test_the_scripts_for_the_device_run(stub: dict[str, str], tmp_path: Path, script: str) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("cuda.bindings.driver", exc_type=ImportError)
    kernels.write(tmp_path, kernels.manifest("one"))
    name, *words = script.split()
    command = [sys.executable, str(GPU / "on_cpu.py"), str(GPU.parents[1] / "bench" / "gpu" / name), *words]
    done = subprocess.run(
        [*command, "--kernels", str(tmp_path)],
        env={**stub, "OUT": str(tmp_path / "out")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| one |" in (tmp_path / "out" / name).with_suffix(".md").read_text()


@pytest.mark.parametrize("selected", [False, True])
def test_operators_may_be_first_met_inside_a_graph(tmp_path: Path, selected: bool) -> None:
    torch: Any = pytest.importorskip("torch")
    path = kernels.write(tmp_path, kernels.manifest(f"met_{selected}"))
    kernel: Any = runtime.select(path) if selected else runtime.load(path)

    @torch.compile(fullgraph=True, backend="eager")
    def step(a: Any, b: Any) -> Any:
        return kernel.ops.matmul(a * 2, b)

    a, b = (torch.empty(rows, 24, dtype=torch.float16) for rows in (70, 40))
    # Traced whole, and only then stopped by the machine, which has no GPU.
    with pytest.raises(NotImplementedError, match="'CPU' backend"):
        step(a, b)


def test_torch_compile_keeps_the_operator_whole(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    kernel = runtime.load(kernels.write(tmp_path, kernels.manifest("compiled")))
    again = runtime.load(tmp_path / "compiled")
    assert kernel.ops is again.ops, "the same code is registered once"
    with FakeTensorMode():
        a, b = (torch.empty(rows, 24, dtype=torch.float16) for rows in (70, 40))
        d = kernel.ops.matmul(a, b)
        assert tuple(d.shape) == (70, 40) and d.dtype == torch.float16
        assert kernel.ops.matmul_into(a, b, d) is None
    graphs: list[Any] = []

    def keep(graph: Any, example: Any) -> Any:
        graphs.append(graph)
        return lambda *inputs: [torch.zeros(70, 40, dtype=torch.float16)]

    compiled = torch.compile(lambda a, b: kernel.ops.matmul(a, b).relu(), backend=keep, fullgraph=True)
    compiled(torch.zeros(70, 24, dtype=torch.float16), torch.zeros(40, 24, dtype=torch.float16))
    assert "gemmspec.compiled_" in graphs[0].code


def test_bench_without_a_gpu_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    torch: Any = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert bench.main(["specs/hopper_n256.gemmspec"], standalone_mode=False) == 2
    assert "cannot measure here" in capsys.readouterr().err


def _manifest(data: dict[str, Any]) -> Manifest:
    return manifest_of(json.loads(json.dumps(data)), "here")
