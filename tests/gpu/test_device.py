"""Tests of launches on a real GPU: `pytest tests/gpu -m gpu`, with kernels of bench/gpu/build.py in build/gpu.

Whether results are right for all shapes is for bench/gpu/check.py; here it is how a kernel may be called.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from gemmspec import runtime
from gemmspec.runtime import ArgumentProblem, Kernel, Selection, measure
from gemmspec.runtime import selection as selecting

pytestmark = pytest.mark.gpu
FOLDER = Path(os.environ.get("GEMMSPEC_KERNELS", Path(__file__).parent.parent.parent / "build" / "gpu"))
SHAPE = (300, 520, 200)


@pytest.fixture(scope="module")
def torch() -> Any:
    module: Any = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("there is no GPU")
    return module


@pytest.fixture(params=["hopper_n128_dynamic", "hopper_n256_cluster_dynamic"])
def path(request: pytest.FixtureRequest, torch: Any) -> Path:
    path = FOLDER / f"{request.param}.json"
    if not path.is_file():
        pytest.skip(f"no {path}: run bench/gpu/build.py")
    return path


@pytest.fixture
def kernel(path: Path) -> Kernel:
    return runtime.load(path)


@pytest.fixture
def selection(torch: Any) -> Selection:
    if not any(FOLDER.glob("*.cubin")):
        pytest.skip(f"no kernels in {FOLDER}: run bench/gpu/build.py")
    return runtime.select(FOLDER)


def operands(shape: tuple[int, int, int] = SHAPE) -> measure.Operands:
    return measure.Operands(shape, "f16", "f16")


def assert_right(torch: Any, given: measure.Operands, got: Any) -> None:
    torch.cuda.synchronize()
    error = (got.float() - given.reference).norm() / given.reference.norm()
    assert error < measure.MOST_ERROR["f16"]


def assert_captured(torch: Any, call: Kernel | Selection, given: measure.Operands) -> None:
    """Check a call that is captured into a graph, on new values at each replay."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call(given.A, given.B, given.D)
        torch.relu_(given.D)
    for _ in range(3):
        given.A.normal_()
        given.poison()
        graph.replay()
        torch.cuda.synchronize()
        expected = (given.A.float() @ given.B.float().t()).relu()
        assert ((given.D.float() - expected).norm() / expected.norm()) < measure.MOST_ERROR["f16"]


def test_a_call_bound_and_unbound(kernel: Kernel, torch: Any) -> None:
    given = measure.operands_for(kernel, SHAPE)
    assert_right(torch, given, kernel(given.A, given.B))
    assert kernel(given.A, given.B, given.D) is given.D
    assert_right(torch, given, given.D)
    given.poison()
    kernel.bind(given.A, given.B, given.D)()
    assert_right(torch, given, given.D)
    assert given.guards_hold()


def test_the_first_call_may_be_inside_a_graph(kernel: Kernel, torch: Any) -> None:
    assert_captured(torch, kernel, measure.operands_for(kernel, SHAPE))


def test_work_is_in_order_on_the_current_stream(kernel: Kernel, torch: Any) -> None:
    given = measure.operands_for(kernel, (512, 512, 4096))
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        given.A.mul_(0.5)
        kernel(given.A, given.B, given.D)
    stream.synchronize()
    assert_right(torch, given, given.D)


def test_torch_compile(kernel: Kernel, torch: Any) -> None:
    given = measure.operands_for(kernel, SHAPE)

    @torch.compile(fullgraph=True)
    def step(a: Any, b: Any) -> Any:
        return kernel.ops.matmul(a * 2, b).float() / 2

    assert_right(torch, given, step(given.A, given.B))
    torch.library.opcheck(kernel.ops.matmul, (given.A, given.B))
    torch.library.opcheck(kernel.ops.matmul_into, (given.A, given.B, given.D))


def test_a_new_thread(kernel: Kernel, torch: Any) -> None:
    given = measure.operands_for(kernel, SHAPE)
    torch.cuda.synchronize()
    thread = threading.Thread(target=kernel, args=(given.A, given.B, given.D))
    thread.start()
    thread.join()
    assert_right(torch, given, given.D)


def test_arrays_of_others(kernel: Kernel, torch: Any) -> None:
    cupy: Any = pytest.importorskip("cupy")
    given = measure.operands_for(kernel, SHAPE)
    torch.cuda.synchronize()
    a, b, d = (cupy.from_dlpack(x) for x in (given.A, given.B, given.D))
    kernel(a, b, d, stream=torch.cuda.current_stream())
    assert_right(torch, given, given.D)

    class OnlyDlpack:
        def __init__(self, of: Any) -> None:
            self.__dlpack__, self.__dlpack_device__ = of.__dlpack__, of.__dlpack_device__

    given.poison()
    torch.cuda.synchronize()
    kernel(OnlyDlpack(a), OnlyDlpack(b), OnlyDlpack(d), stream=0)
    assert_right(torch, given, given.D)


def test_what_is_refused(kernel: Kernel, torch: Any) -> None:
    given = measure.operands_for(kernel, SHAPE)
    with pytest.raises(ArgumentProblem, match="`A` is on cpu"):
        kernel(given.A.cpu(), given.B, given.D)
    with pytest.raises(ArgumentProblem, match=r"`B` is f32, and kernel `.*` takes f16"):
        kernel(given.A, given.B.float(), given.D)
    with pytest.raises(ArgumentProblem, match=r"`B` has strides \(1, 520\)"):
        kernel(given.A, torch.empty(200, 520, device="cuda", dtype=torch.float16).t(), given.D)
    with pytest.raises(ArgumentProblem, match="bytes past a multiple of 16"):
        whole = torch.empty(300 * 200 + 1, device="cuda", dtype=torch.float16)
        kernel(whole[1:].view(300, 200), given.B, given.D)


# -- launches that overlap -----------------------------------------------------------------------------------------

LINKS, SQUARE = 200, 512


class Chain:
    """Products of which each takes the one before as its A: D = A @ Q^T @ Q^T ... in two buffers, taken in turn.

    Q is orthogonal, so that the elements stay as large as they are at the start.
    """

    def __init__(self, torch: Any) -> None:
        def half() -> Any:
            return torch.empty(SQUARE, SQUARE, device="cuda", dtype=torch.float16)

        self.A, self.buffers = half().normal_(), (half(), half())
        self.Q = torch.linalg.qr(torch.randn(SQUARE, SQUARE, device="cuda"))[0].half().contiguous()
        self.reference = self.A.double() @ torch.linalg.matrix_power(self.Q.double().t(), LINKS)

    def enqueue(self, kernel: Kernel) -> Any:
        """Put all launches on the current stream; return where the last one writes."""
        for buffer in self.buffers:
            buffer.fill_(float("nan"))
        given = self.A
        for link in range(LINKS):
            given = kernel(given, self.Q, self.buffers[link % 2])
        return given


def test_overlapping_launches_wait_for_what_they_read(path: Path, torch: Any) -> None:
    """A launch that read ahead of the one before, or wrote what that one still reads, would give other bits."""
    apart, overlapping = runtime.load(path, overlap=False), runtime.load(path)
    assert overlapping.manifest.programmatic
    chain = Chain(torch)
    expected = chain.enqueue(apart).clone()
    error = (expected.double() - chain.reference).norm() / chain.reference.norm()
    assert error < 0.05, "200 roundings to half precision, each 2^-11 at most, and not all of one sign"
    for _ in range(10):
        torch.cuda._sleep(10_000_000)  # all launches are there before the first one runs
        assert torch.equal(chain.enqueue(overlapping), expected)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        last = chain.enqueue(overlapping)
    for _ in range(10):
        last.zero_()
        graph.replay()
        graph.replay()
        assert torch.equal(last, expected)


# -- several kernels as one ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [SHAPE, (1, 8, 8), (128, 2048, 4096), (1024, 1024, 1024)])
def test_a_selection_is_called_as_its_kernel_is(selection: Selection, torch: Any, shape: tuple[int, int, int]) -> None:
    given = operands(shape)
    assert selection(given.A, given.B, given.D) is given.D
    assert_right(torch, given, given.D)
    assert given.guards_hold()
    chosen = selection.kernel_for(given.A, given.B, given.D)
    assert chosen is selection.choose(*shape).kernel and chosen.manifest.types == "f16 f16 f16"
    assert torch.equal(chosen(given.A, given.B), given.D)
    assert torch.equal(selection(given.A, given.B), given.D)
    given.poison()
    selection.bind(given.A, given.B, given.D)()
    assert_right(torch, given, given.D)


def test_the_first_call_of_a_selection_may_be_inside_a_graph(selection: Selection, torch: Any) -> None:
    assert_captured(torch, selection, operands())


def test_torch_compile_of_a_selection(selection: Selection, torch: Any) -> None:
    given = operands()

    @torch.compile(fullgraph=True)
    def step(a: Any, b: Any) -> Any:
        return selection.ops.matmul(a * 2, b).float() / 2

    assert_right(torch, given, step(given.A, given.B))
    torch.library.opcheck(selection.ops.matmul, (given.A, given.B))
    torch.library.opcheck(selection.ops.matmul_into, (given.A, given.B, given.D))


def test_a_second_call_asks_nothing(selection: Selection, torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a look into a dictionary and the call of the kernel: other matrices of the same shape are decided, too."""
    given, others = operands(), operands()
    for D in (None, given.D):
        selection(given.A, given.B, D)

    def ask(*_: Any) -> Any:
        raise AssertionError("asked")

    monkeypatch.setattr(selecting, "view_of", ask)
    monkeypatch.setattr(selecting, "choose", ask)
    assert_right(torch, others, selection(others.A, others.B, others.D))
    assert_right(torch, others, selection(others.A, others.B))
    new = operands((SHAPE[0] + 1, *SHAPE[1:]))
    with pytest.raises(AssertionError, match="asked"):
        selection(new.A, new.B, new.D)


def test_what_no_kernel_takes(selection: Selection, torch: Any) -> None:
    given = operands()
    for A, B, said in [
        (given.A[:, :100].contiguous(), given.B[:, :100].contiguous(), "M = 300, N = 520, K = 100 of f16, f16, f16"),
        (given.A.float(), given.B.float(), "M = 300, N = 520, K = 200 of f32, f32, f32"),
    ]:
        with pytest.raises(ArgumentProblem, match=rf"none of \d+ kernels takes {said} on ") as raised:
            selection(A, B)
        assert all(f"`{kernel.name}`: " in str(raised.value) for kernel in selection.kernels)
    with pytest.raises(ArgumentProblem, match="`B` has 192 columns, and `A` has 200 columns: both are K"):
        selection(given.A, given.B[:, :192].contiguous(), given.D)
    with pytest.raises(ArgumentProblem, match="`A` has 3 dimensions"):
        selection(given.A[None], given.B, given.D)
    assert_right(torch, given, selection(given.A, given.B, given.D))
