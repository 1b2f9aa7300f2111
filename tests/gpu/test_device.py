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
from gemmspec.runtime import ArgumentProblem, Kernel, measure

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
def kernel(request: pytest.FixtureRequest, torch: Any) -> Kernel:
    path = FOLDER / f"{request.param}.json"
    if not path.is_file():
        pytest.skip(f"no {path}: run bench/gpu/build.py")
    return runtime.load(path)


def assert_right(torch: Any, given: measure.Operands, got: Any) -> None:
    torch.cuda.synchronize()
    error = (got.float() - given.reference).norm() / given.reference.norm()
    assert error < measure.MOST_ERROR["f16"]


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
    given = measure.operands_for(kernel, SHAPE)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(given.A, given.B, given.D)
        torch.relu_(given.D)
    for _ in range(3):
        given.A.normal_()
        given.poison()
        graph.replay()
        torch.cuda.synchronize()
        expected = (given.A.float() @ given.B.float().t()).relu()
        assert ((given.D.float() - expected).norm() / expected.norm()) < measure.MOST_ERROR["f16"]


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
