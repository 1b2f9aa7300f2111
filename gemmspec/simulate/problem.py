"""The numbers that a simulation computes on: operands, rounded to their types, and the reference result.

Given a spec and sizes, return a `Problem`. All arrays are float32 that hold values of the narrower type, since
NumPy multiplies those fast and knows no bf16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from gemmspec.model.spec import Spec
from gemmspec.vocabulary import DType

Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Problem:
    """`reference` = a @ b.T in float32, not rounded to the output type; `a` is M x K, `b` is N x K."""

    m: int
    n: int
    k: int
    a: Array
    b: Array
    reference: Array
    by: str
    """What computed the reference: `torch`, or `numpy` where torch is not installed."""


def sizes_of(spec: Spec, sizes: Mapping[str, int]) -> tuple[int, int, int]:
    """Return M, N and K: as in `sizes`, else as in the spec (the typical one where it is known at run time only)."""
    m, n, k = (sizes.get(size.name, size.typical or size.high) for size in spec.sizes)
    return m, n, k


def prepare(spec: Spec, sizes: Mapping[str, int], seed: int = 0) -> Problem:
    """Return random operands, the same for the same seed, and their product."""
    m, n, k = sizes_of(spec, sizes)
    rng = np.random.default_rng(seed)
    # Halved, so that products of a few thousand terms stay well inside f16.
    a = rounded(rng.standard_normal((m, k), dtype=np.float32) * np.float32(0.5), spec.gemm.a.value)
    b = rounded(rng.standard_normal((n, k), dtype=np.float32) * np.float32(0.5), spec.gemm.b.value)
    reference, by = _product(a, b)
    return Problem(m, n, k, a, b, reference, by)


def rounded(values: Array, dtype: DType) -> Array:
    """Return values rounded to nearest, ties to even, as float32. What is too large becomes infinite."""
    match dtype:
        case DType.F32:
            return values
        case DType.F16:
            with np.errstate(over="ignore", invalid="ignore"):
                return values.astype(np.float16).astype(np.float32)
        case DType.BF16:
            bits = np.ascontiguousarray(values).view(np.uint32)
            # Adding just under half of the last kept place, and one more where that place is odd, carries as needed.
            carried = bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
            result = (carried & np.uint32(0xFFFF0000)).view(np.float32)
            return np.where(np.isnan(values), np.float32(np.nan), result).astype(np.float32, copy=False)
        case _:
            assert_never(dtype)


# OpenBLAS takes a product of at most this many multiplications on the calling thread (interface/gemm.c,
# SMP_THRESHOLD_MIN * GEMM_MULTITHREAD_THRESHOLD). Its other threads spin: on shared cores they make 40 us to 30 ms.
_ONE_THREAD = 1 << 18


def multiply(a: Array, b: Array, out: Array) -> None:
    """Set out = a @ b.T for tiles, in blocks that are small enough for one thread."""
    m, n, depth = a.shape[0], b.shape[0], a.shape[1]
    rows = next((r for r in (64, 32, 16) if m % r == 0), m)
    columns = next((c for c in (64, 32, 16, 8) if n % c == 0 and rows * c * depth <= _ONE_THREAD), n)
    np.matmul(
        a.reshape(-1, 1, rows, depth),
        b.reshape(1, -1, columns, depth).swapaxes(2, 3),
        out=out.reshape(m // rows, rows, n // columns, columns).swapaxes(1, 2),
    )


def _product(a: Array, b: Array) -> tuple[Array, str]:
    """Return a @ b.T in float32 and what computed it. torch shares no code with the simulator, so it goes first."""
    try:
        import importlib

        torch: Any = importlib.import_module("torch")
    except ImportError:
        return a @ b.T, "numpy"
    return torch.matmul(torch.from_numpy(a), torch.from_numpy(b).T).numpy(), "torch"
