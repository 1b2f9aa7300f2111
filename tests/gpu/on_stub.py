"""Tests of launches, on the stub of libcuda: `test_runtime.py` runs this file in a process that has it.

The stub computes D = A @ B^T from the tensor maps alone, and writes down every call.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import stub_kernels as kernels

from gemmspec import runtime
from gemmspec.runtime import ArgumentProblem, DriverProblem, Kernel, LoadProblem
from gemmspec.toolchain.clib import build_library, write_c

Log = Callable[[], list[str]]


class Matrix:
    """An array that says it is on a device."""

    def __init__(self, array: Any, **more: Any) -> None:
        self.array = array
        data = (array.ctypes.data, False)
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": array.dtype.str, "data": data, "strides": array.strides, "version": 3,
            **more,
        }  # fmt: skip


def matrix(rows: int, columns: int, dtype: str = "f2", offset: int = 0) -> Matrix:
    """Return random numbers at a multiple of 64 bytes, and so many bytes past it."""
    size = np.dtype(dtype).itemsize
    raw = np.zeros(rows * columns * size + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    array = raw[start : start + rows * columns * size].view(dtype).reshape(rows, columns)
    array[:] = np.random.default_rng().integers(-4, 5, (rows, columns)) / 4
    return Matrix(array)


def problem(m: int = 70, n: int = 40, k: int = 24) -> tuple[Matrix, Matrix, Matrix]:
    d = matrix(m, n)
    d.array[:] = np.nan
    return matrix(m, k), matrix(n, k), d


def assert_right(a: Matrix, b: Matrix, d: Matrix) -> None:
    expected = a.array.astype("f4") @ b.array.astype("f4").T
    np.testing.assert_allclose(d.array.astype("f4"), expected, rtol=1e-3, atol=1e-3)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    """What the driver was asked for since the last look."""
    path = tmp_path / "calls"
    monkeypatch.setenv("STUB_LOG", str(path))

    def since() -> list[str]:
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    return since


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    """A kernel for any sizes."""
    return runtime.load(kernels.write(tmp_path, kernels.manifest()))


def test_a_launch_is_what_the_manifest_says(kernel: Kernel, log: Log) -> None:
    a, b, d = problem()
    assert kernel(a, b, d) is d
    assert_right(a, b, d)
    calls = log()
    assert "load ELF" in calls and "function gemm_kernel" in calls and "attribute 8 = 230400" in calls
    assert [line for line in calls if line.startswith("map")] == [
        "map type 6 rank 2 dims 24 70 strides 48 box 64 128 steps 1 1 0 3 2 0",
        "map type 6 rank 2 dims 24 40 strides 48 box 64 128 steps 1 1 0 3 2 0",
        "map type 6 rank 2 dims 40 70 strides 80 box 64 64 steps 1 1 0 3 2 0",
    ]
    assert calls[-3:] == [
        "launch grid 1 1 1 block 384 1 1 shared 230400 stream 0 attributes 2",
        "launch attribute 4 = 2 1 1",
        "launch attribute 6 = 1 0 0",
    ]


def test_a_launch_may_be_asked_not_to_overlap(tmp_path: Path, log: Log) -> None:
    kernel = runtime.load(kernels.write(tmp_path, kernels.manifest()), overlap=False)
    kernel(*problem())
    assert log()[-2:] == [
        "launch grid 1 1 1 block 384 1 1 shared 230400 stream 0 attributes 1",
        "launch attribute 4 = 2 1 1",
    ]


def test_a_graph_may_be_captured_while_a_kernel_is_loaded(kernel: Kernel, log: Log) -> None:
    kernel(*problem())
    assert [line for line in log() if line.startswith(("capture", "load"))] == [
        "capture mode 2", "load ELF", "capture mode 0",
    ]  # fmt: skip


def test_what_was_made_once_is_not_made_again(kernel: Kernel, log: Log) -> None:
    a, b, d = problem()
    kernel(a, b, d)
    log()
    kernel(a, b, d)
    assert [line.split()[0] for line in log()] == ["launch", "launch", "launch"]
    other = problem()
    kernel(a, b, other[2])
    assert sum(line.startswith("map") for line in log()) == 1
    assert_right(a, b, other[2])


def test_tensor_maps_do_not_pile_up(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_IDLE", "1")
    a, b, d = problem(8, 8, 8)
    kept = [matrix(8, 8) for _ in range(1500)]
    for one in kept:
        kernel(one, b, d)
    kernel(a, b, d)
    assert len(kernel._launches) <= 256 and len(kernel._maps) <= 1024


def test_a_bound_launch_reads_what_is_there_now(kernel: Kernel, log: Log) -> None:
    a, b, d = problem()
    step = kernel.bind(a, b, d)
    assert not any(line.startswith("launch") for line in log())
    a.array[:] *= 2
    step()
    assert_right(a, b, d)
    assert step.D is d
    step(77)
    assert any("stream 77 " in line for line in log())


def test_the_stream_is_the_one_that_the_caller_means(kernel: Kernel, log: Log) -> None:
    a, b, d = problem()
    kernel(a, b, d, stream=5)
    kernel(a, b, d, stream=SimpleNamespace(cuda_stream=6))
    kernel(a, b, d, stream=SimpleNamespace(ptr=7))
    kernel(a, b, Matrix(d.array, stream=8))
    assert [line.split("stream ")[1].split()[0] for line in log() if " stream " in line] == ["5", "6", "7", "8"]
    with pytest.raises(ArgumentProblem, match="str is no stream"):
        kernel(a, b, d, stream="main")


def test_threads_may_launch_at_the_same_time(kernel: Kernel, log: Log) -> None:
    problems = [problem(16, 8, 8) for _ in range(8)]

    def work(number: int) -> None:
        for _ in range(25):
            kernel(*problems[number], stream=100 + number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in problems:
        assert_right(*one)
    streams = [line.split("stream ")[1].split()[0] for line in log() if " stream " in line]
    assert sorted(streams) == sorted(str(100 + i) for i in range(8) for _ in range(25))


def test_a_thread_without_a_context_gets_the_device_s(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, d = problem()
    kernel(a, b, d)
    d.array[:] = np.nan
    monkeypatch.setenv("STUB_NO_CONTEXT", "1")
    thread = threading.Thread(target=kernel, args=(a, b, d))
    thread.start()
    thread.join()
    assert_right(a, b, d)


def test_a_thread_without_a_context_makes_tensor_maps(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, d = problem()
    kernel.function(0)
    monkeypatch.setenv("STUB_NO_CONTEXT", "1")
    thread = threading.Thread(target=kernel, args=(a, b, d))
    thread.start()
    thread.join()
    assert_right(a, b, d)


def test_a_d_without_elements_is_no_launch(kernel: Kernel, log: Log) -> None:
    kernel(matrix(0, 8), matrix(16, 8), matrix(0, 16))
    assert not any(line.startswith(("launch", "map")) for line in log())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((matrix(8, 8, "f4"), matrix(8, 8), matrix(8, 8)), "`A` is f32, and kernel `gemm` takes f16"),
        ((matrix(8, 8), matrix(8, 16), matrix(8, 8)), "`B` has 16 columns, and `A` has 8 columns: both are K"),
        ((matrix(8, 8), matrix(8, 8), matrix(9, 8)), "`D` has 9 rows, and `A` has 8 rows: both are M"),
        ((matrix(8, 8), matrix(8, 8), Matrix(matrix(8, 8).array.T)), "`D` has strides (1, 8), and must be row-major"),
        (
            (matrix(8, 12), matrix(8, 12), matrix(8, 8)),
            "a row of `A` is 24 bytes (12 f16), and must be a multiple of 16",
        ),
        ((matrix(8, 8), matrix(12, 8), matrix(8, 12)), "a row of `D` is 24 bytes (12 f16)"),
        ((matrix(8, 8, offset=8), matrix(8, 8), matrix(8, 8)), "8 bytes past a multiple of 16"),
        ((Matrix(np.zeros((2, 8, 8), "f2")), matrix(8, 8), matrix(8, 8)), "`A` has 3 dimensions (2 x 8 x 8)"),
        ((matrix(8, 0), matrix(8, 0), matrix(8, 8)), "`A` has 0 columns"),
        ((np.zeros((8, 8), "f2"), matrix(8, 8), matrix(8, 8)), "`A` is not on a CUDA device"),
        (([[1.0]], matrix(8, 8), matrix(8, 8)), "`A` is of type builtins.list"),
        ((matrix(8, 8), matrix(8, 8), Matrix(matrix(8, 8).array, data=(64, True))), "`D` is read-only"),
    ],
)
def test_what_a_kernel_does_not_take_is_refused(kernel: Kernel, log: Log, given: Any, said: str) -> None:
    with pytest.raises(ArgumentProblem) as caught:
        kernel(*given)
    assert said in str(caught.value)
    assert not any(line.startswith("launch") for line in log())


def test_d_must_not_overlap_what_is_read(kernel: Kernel) -> None:
    a, b, _ = problem(8, 8, 8)
    with pytest.raises(ArgumentProblem, match=r"`D` at .* overlaps `A` at"):
        kernel(a, b, a)


def test_fixed_sizes_are_checked(tmp_path: Path) -> None:
    fixed = runtime.load(kernels.write(tmp_path, kernels.manifest("fixed", {"M": 16, "N": 8, "K": 8})))
    a, b, d = problem(16, 8, 8)
    fixed(a, b, d)
    assert_right(a, b, d)
    with pytest.raises(ArgumentProblem, match="`A` has 24 rows, and kernel `fixed` takes a `A` of 16 x 8"):
        fixed(*problem(24, 8, 8))


def test_a_kernel_for_another_card_is_refused(tmp_path: Path, kernel: Kernel) -> None:
    wrong = runtime.load(kernels.write(tmp_path, kernels.manifest("blackwell", target="sm_100a")))
    with pytest.raises(LoadProblem, match=r"`blackwell` is built for sm_100a .*10\.0.*, Stub GPU, is of 9\.0"):
        wrong(*problem())


@pytest.mark.parametrize(
    "call", ["cuModuleLoadData", "cuFuncSetAttribute", "cuTensorMapEncodeTiled", "cuLaunchKernelEx"]
)
def test_what_the_driver_refuses_is_an_error(kernel: Kernel, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    monkeypatch.setenv("STUB_FAIL", f"{call}:209")
    with pytest.raises(DriverProblem, match=f"{call} says CUDA_ERROR_NO_BINARY_FOR_GPU .no kernel image") as caught:
        kernel(*problem())
    assert caught.value.status == 209


class Tensor:
    """As much of a torch tensor as a launch looks at."""

    def __init__(self, of: Matrix) -> None:
        self.of, self.shape, self.is_cuda, self.dtype, self.device = of, of.array.shape, True, "torch.float16", "cuda:0"

    def data_ptr(self) -> int:
        return self.of.array.ctypes.data

    def stride(self) -> tuple[int, ...]:
        return tuple(s // 2 for s in self.of.array.strides)

    def is_contiguous(self) -> bool:
        return self.of.array.flags.c_contiguous

    def get_device(self) -> int:
        return 0


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module in place of torch, whose current stream is 42."""
    module: Any = ModuleType("torch")
    module.Tensor = Tensor
    module._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 42 + device)
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_tensors_are_launched_on_torch_s_current_stream(kernel: Kernel, log: Log, torch: Any) -> None:
    a, b, d = problem()
    kernel(Tensor(a), Tensor(b), Tensor(d))
    assert_right(a, b, d)
    kernel.bind(Tensor(a), Tensor(b), Tensor(d))()
    del torch._C._cuda_getCurrentRawStream
    torch.cuda = SimpleNamespace(current_stream=lambda device: SimpleNamespace(cuda_stream=43))
    kernel(Tensor(a), Tensor(b), Tensor(d))
    assert [line.split("stream ")[1].split()[0] for line in log() if " stream " in line] == ["42", "42", "43"]


def test_a_tensor_elsewhere_is_refused(kernel: Kernel, torch: Any) -> None:
    a, b, d = map(Tensor, problem())
    a.is_cuda, a.device = False, "cpu"
    with pytest.raises(ArgumentProblem, match="`A` is on cpu, and the kernel runs on a CUDA device"):
        kernel(a, b, d)


def library(folder: Path, data: dict[str, Any]) -> ctypes.CDLL:
    kernel = runtime.load(kernels.write(folder, data))
    path = folder / f"{kernel.name}.so"
    path.write_bytes(build_library(kernel.name, write_c(kernel.manifest, kernel.cubin)))
    loaded = ctypes.CDLL(str(path))
    getattr(loaded, f"{kernel.name}_error").restype = ctypes.c_char_p
    return loaded


def call(function: Any, a: Matrix, b: Matrix, d: Matrix, *sizes: int, stream: int = 0) -> int:
    pointers = [ctypes.c_void_p(x.array.ctypes.data) for x in (a, b, d)]
    return function(*pointers, *sizes, ctypes.c_void_p(stream))


def test_the_library_launches_as_the_manifest_says(tmp_path: Path, log: Log, kernel: Kernel) -> None:
    """Line for line what the Python runtime does, the name apart."""
    loaded = library(tmp_path, kernels.manifest("inc"))
    a, b, d = problem()
    kernel(a, b, d, stream=9)
    expected = [line for line in log() if line.startswith(("map", "launch", "attribute", "load"))]
    d.array[:] = np.nan
    assert call(loaded.inc, a, b, d, 70, 40, 24, stream=9) == 0, loaded.inc_error()
    assert_right(a, b, d)
    assert [line for line in log() if line.startswith(("map", "launch", "attribute", "load"))] == expected
    assert call(loaded.inc, a, b, d, 70, 40, 24) == 0
    assert not any(line.startswith("load") for line in log())


def test_the_library_says_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = library(tmp_path, kernels.manifest("wrongly"))
    a, b, d = problem()
    monkeypatch.setenv("STUB_FAIL", "cuModuleLoadData:209")
    assert call(loaded.wrongly, a, b, d, 70, 40, 24) == 209
    assert (
        loaded.wrongly_error()
        == b"cuModuleLoadData: error 209 (no kernel image is available for execution on the device)"
    )
    monkeypatch.delenv("STUB_FAIL")
    cases = [
        ((a, b, d, 70, 40, 23), 1, b"a row of A is 46 bytes, which is no multiple of 16"),
        ((a, b, d, 70, 40, 0), 1, b"K is 0, and must be at least 1"),
        ((a, b, d, -1, 40, 24), 1, b"M is -1, and must be at least 0"),
        ((matrix(70, 24, offset=2), b, d, 70, 40, 24), 1, b"A is at 0x"),
    ]
    for given, status, said in cases:
        assert call(loaded.wrongly, *given) == status
        assert said in loaded.wrongly_error()
    assert call(loaded.wrongly, a, b, d, 0, 40, 24) == 0
    monkeypatch.setenv("STUB_NO_CONTEXT", "1")
    results: list[tuple[int, bytes]] = []

    def elsewhere() -> None:
        results.append((call(loaded.wrongly, a, b, d, 70, 40, 24), loaded.wrongly_error()))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert results == [(201, b"no CUDA context is current in this thread (cudaSetDevice makes one so)")]
    assert b"A is at" in loaded.wrongly_error(), "each thread has its own"


def test_the_library_of_fixed_sizes_takes_none(tmp_path: Path) -> None:
    loaded = library(tmp_path, kernels.manifest("all_fixed", {"m": 16, "n": 8, "k": 8}))
    a, b, d = problem(16, 8, 8)
    assert call(loaded.all_fixed, a, b, d) == 0, loaded.all_fixed_error()
    assert_right(a, b, d)
