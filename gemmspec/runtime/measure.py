"""Kernels on a GPU: first whether they are right, then how long they take beside torch.matmul, which is cuBLAS.

Needs torch. The inputs are fresh and random, the output is poisoned and fenced in, and the reference is computed in
float32. Times are of CUDA graphs, candidates in turn, each round a pair with cuBLAS: a power cap slows both alike.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gemmspec.runtime.kernel import Kernel

CUBLAS = "cublas"
# The norm of the error over that of the result: rounding to 11 (f16) or 8 bits (bf16) gives 2.8e-4 and 2.3e-3.
MOST_ERROR = {"f16": 6e-4, "bf16": 5e-3, "f32": 1e-4}
_GUARD = 4096  # elements before and after D that nobody may write
_CACHE_BYTES = 192 << 20  # inputs go round in more than the L2 cache holds
_GRAPH_MS = 3.0
_WARM_S = 0.3

Shape = tuple[int, int, int]
Beat = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Checked:
    """One launch against the reference. `fault`: what is wrong in words, or nothing."""

    error: float
    fault: str

    @property
    def ok(self) -> bool:
        """Whether the result is right."""
        return not self.fault


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of one candidate. `ratio`: cuBLAS's time over its own, median of the rounds; `spread`: their quartiles."""

    ms: float
    tflops: float
    ratio: float
    spread: tuple[float, float]


class Operands:
    """A, B and a poisoned D between guards, on the current device, new at each call."""

    def __init__(self, shape: Shape, operand: str, result: str) -> None:
        torch = _torch()
        m, n, k = shape
        kinds = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
        self.A = torch.randn((m, k), device="cuda", dtype=kinds[operand])
        self.B = torch.randn((n, k), device="cuda", dtype=kinds[operand])
        self._whole = torch.full((m * n + 2 * _GUARD,), float("nan"), device="cuda", dtype=kinds[result])
        self._whole[:_GUARD] = 77
        self._whole[_GUARD + m * n :] = 77
        self.D = self._whole[_GUARD : _GUARD + m * n].view(m, n)

    @cached_property
    def reference(self) -> Any:
        """A @ B^T in float32."""
        _torch().backends.cuda.matmul.allow_tf32 = False
        return self.A.float() @ self.B.float().t()

    def poison(self) -> None:
        """Fill D with NaN."""
        self.D.fill_(float("nan"))

    def guards_hold(self) -> bool:
        """Whether nobody wrote before or behind D."""
        return bool((self._whole[:_GUARD] == 77).all() and (self._whole[-_GUARD:] == 77).all())


def operands_for(kernel: Kernel, shape: Shape) -> Operands:
    """Return operands of the kernel's types."""
    a, _, d = kernel.manifest.tensors
    return Operands(shape, a.dtype, d.dtype)


def fits(kernel: Kernel, shape: Shape) -> bool:
    """Whether a kernel is built for a shape."""
    return all(size is None or size == asked for size, asked in zip(kernel.manifest.sizes.values(), shape, strict=True))


def seed_anew() -> int:
    """Give torch a fresh seed, and return it for the record."""
    return int(_torch().seed())


def check(kernel: Kernel, shape: Shape, operands: Operands | None = None) -> Checked:
    """Launch a kernel once, and compare D with the product in float32. `operands`: those of another kernel."""
    torch = _torch()
    given = operands or operands_for(kernel, shape)
    given.poison()
    kernel(given.A, given.B, given.D)
    torch.cuda.synchronize()
    reference = given.reference
    got = given.D.float()
    bad = int(torch.isnan(got).sum())
    error = float((got - reference).norm() / reference.norm().clamp(min=1e-30))
    most = MOST_ERROR[kernel.manifest.tensors[2].dtype]
    if not given.guards_hold():
        return Checked(error, "it wrote outside of D")
    if bad:
        first = torch.isnan(got).nonzero()[0].tolist()
        return Checked(error, f"{bad} of {got.numel()} elements are NaN or were not written, the first D{first}")
    return Checked(error, "" if error <= most else f"relative error {error:.2e}, and {most:.0e} is the most")


def repeats(kernel: Kernel, shape: Shape, count: int, beat: Beat) -> int:
    """Return how many of so many launches on the same input give other bits than the first."""
    torch = _torch()
    given = operands_for(kernel, shape)
    kernel(given.A, given.B, given.D)
    first = given.D.clone()
    step = kernel.bind(given.A, given.B, given.D)
    differ = torch.zeros((), device="cuda", dtype=torch.int64)
    for i in range(count):
        given.D.fill_(float("nan"))
        step()
        # As bits: NaN differs from itself, and minus zero does not from zero.
        differ += (given.D.view(torch.int8) != first.view(torch.int8)).any()
        if i % 50 == 49:
            torch.cuda.synchronize()
            beat(f"{kernel.name} {_text(shape)}, repeat {i + 1} of {count}")
    return int(differ)


def race(kernels: Mapping[str, Kernel], shape: Shape, rounds: int, beat: Beat) -> dict[str, Timing]:
    """Time kernels of one type beside cuBLAS, in turn, for so many rounds. All must have been checked."""
    torch = _torch()
    m, n, k = shape
    first = next(iter(kernels.values()))
    bytes_ = 2 * (m * k + n * k + m * n)
    sets = [operands_for(first, shape) for _ in range(min(max(-(-_CACHE_BYTES // bytes_), 3), 32))]
    candidates: dict[str, Sequence[Callable[[], Any]]] = {
        CUBLAS: [_cublas(s) for s in sets],
        **{name: [kernel.bind(s.A, s.B, s.D) for s in sets] for name, kernel in kernels.items()},
    }
    graphs: dict[str, Any] = {}
    launches: dict[str, int] = {}
    for name, calls in candidates.items():
        beat(f"{name} {_text(shape)}, capture")
        launches[name] = _launches(calls)
        graphs[name] = _graph(calls, launches[name])
    until = time.monotonic() + _WARM_S
    while time.monotonic() < until:
        graphs[CUBLAS].replay()
        torch.cuda.synchronize()
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(rounds):
        order = list(graphs)
        random.shuffle(order)
        for name in order:
            beat(f"{name} {_text(shape)}")
            times[name].append(_time(graphs[name]) / launches[name])
    beat(f"{_text(shape)}, done")
    return {name: _timing(shape, mine, times[CUBLAS]) for name, mine in times.items()}


def _cublas(given: Operands) -> Callable[[], Any]:
    torch = _torch()
    transposed = given.B.t()
    return lambda: torch.matmul(given.A, transposed, out=given.D)


def _launches(calls: Sequence[Callable[[], Any]]) -> int:
    """Return how many launches fill a graph."""
    torch = _torch()
    for call in calls:
        call()
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for call in calls:
        call()
    end.record()
    end.synchronize()
    return max(1, round(_GRAPH_MS / max(start.elapsed_time(end) / len(calls), 1e-3)))


def _graph(calls: Sequence[Callable[[], Any]], launches: int) -> Any:
    torch = _torch()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(launches):
            calls[i % len(calls)]()
    return graph


def _time(graph: Any) -> float:
    """Return the milliseconds of a replay, right behind another."""
    torch = _torch()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end))


def _timing(shape: Shape, mine: list[float], cublas: list[float]) -> Timing:
    ratios = [theirs / own for theirs, own in zip(cublas, mine, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    ms = statistics.median(mine)
    m, n, k = shape
    return Timing(ms=ms, tflops=2e-9 * m * n * k / ms, ratio=middle, spread=(low, high))


def _text(shape: Shape) -> str:
    return " x ".join(map(str, shape))


def _torch() -> Any:
    import torch

    return torch
