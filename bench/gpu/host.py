"""Measures what a call costs the host: bound, unbound, through C, and torch.matmul.

    python bench/gpu/host.py

Launches a small product, a few hundred times between two waits for the GPU, so that its queue is never full. Writes
host.json and host.md.
"""

from __future__ import annotations

import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from common import kernels, options, watch, write

from gemmspec.runtime import measure
from gemmspec.runtime.card import card

SHAPE = (8, 8, 8)
"""The host does the same for any shape. For this one the tests' stub, which multiplies itself, is quick, too."""
_CALLS, _ROUNDS = 300, 30


def cost(call: Callable[[], Any], beat: Callable[[str], None]) -> float:
    """Return the microseconds of a call: the median of the rounds."""
    import torch

    rounds: list[float] = []
    for _ in range(_ROUNDS):
        beat("host cost")
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(_CALLS):
            call()
        rounds.append((time.perf_counter() - start) / _CALLS * 1e6)
    torch.cuda.synchronize()
    return statistics.median(rounds)


def main() -> int:
    """Measure; return the exit status."""
    import torch

    asked = options(__doc__ or "").parse_args()
    at_hand = card()
    watchdog = watch(asked.patience)
    found = kernels(asked.kernels, asked.only)
    name, kernel = next((n, k) for n, k in found.items() if (asked.kernels / f"{n}.so").is_file() and "n128" in n)
    given = measure.operands_for(kernel, SHAPE)
    other = [measure.operands_for(kernel, SHAPE) for _ in range(64)]
    A, B, D = given.A, given.B, given.D
    bound = kernel.bind(A, B, D)
    stream = torch.cuda.current_stream().cuda_stream
    library = ctypes.CDLL(str(asked.kernels / f"{name}.so"))
    entry = getattr(library, name)
    entry.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 3 + [ctypes.c_void_p]
    words = (A.data_ptr(), B.data_ptr(), D.data_ptr(), *SHAPE, stream)
    turn = iter(range(10**9))

    def new_pointers() -> None:
        at = other[next(turn) % len(other)]
        kernel(at.A, at.B, at.D)

    def from_c() -> None:
        assert entry(*words) == 0

    transposed = B.t()
    calls: dict[str, Callable[[], Any]] = {
        "bound(stream)": lambda: bound(stream),
        "bound()": bound,
        "kernel(A, B, D)": lambda: kernel(A, B, D),
        "kernel(A, B, D), 64 sets in turn": new_pointers,
        "kernel(A, B), D allocated": lambda: kernel(A, B),
        "kernel.ops.matmul_into(A, B, D)": lambda: kernel.ops.matmul_into(A, B, D),
        "C, called by ctypes": from_c,
        "torch.matmul(A, B.t(), out=D)": lambda: torch.matmul(A, transposed, out=D),
    }
    costs = {what: cost(call, watchdog.beat) for what, call in calls.items()}
    watchdog.stop()
    table = [f"# Host cost of a call: {at_hand['device']}, {name}", "", "| call | us |", "|---|---|"]
    table += [f"| {what} | {us:.2f} |" for what, us in costs.items()]
    write("host", {"card": at_hand, "us": costs}, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
