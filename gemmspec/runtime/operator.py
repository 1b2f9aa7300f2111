"""A kernel, or a selection of kernels, as operators of torch: `torch.compile` keeps them in its graph, whole."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_registered: dict[str, Operators] = {}


@dataclass(frozen=True, slots=True)
class Operators:
    """`matmul(A, B)` returns D; `matmul_into(A, B, D)` writes it, and returns nothing. Neither has a gradient."""

    matmul: Callable[[Any, Any], Any]
    matmul_into: Callable[[Any, Any, Any], None]

    @staticmethod
    def of(name: str, content: str, multiply: Callable[..., Any], result_type: Callable[[Any], Any]) -> Operators:
        """Register with torch what is called as a kernel is. The same content is registered once a process.

        `result_type`: the type of D for an A, both as torch has them.
        """
        whole = f"gemmspec::{re.sub('[^A-Za-z0-9_]', '_', name)}_{content[:12]}"
        if whole not in _registered:
            _registered[whole] = _register(whole, multiply, result_type)
        return _registered[whole]


def _register(name: str, multiply: Callable[..., Any], result_type: Callable[[Any], Any]) -> Operators:
    import torch

    def matmul(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return multiply(A, B)

    def matmul_into(A: torch.Tensor, B: torch.Tensor, D: torch.Tensor) -> None:
        multiply(A, B, D)

    def like(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A.new_empty((A.shape[0], B.shape[0]), dtype=result_type(A.dtype))

    def nothing(A: torch.Tensor, B: torch.Tensor, D: torch.Tensor) -> None:
        return None

    # The schema is given: these annotations are text here, which torch does not read.
    library: Any = torch.library
    makes = library.custom_op(
        name, matmul, mutates_args=(), device_types="cuda", schema="(Tensor A, Tensor B) -> Tensor"
    )
    makes.register_fake(like)
    writes = library.custom_op(
        f"{name}_into",
        matmul_into,
        mutates_args=("D",),
        device_types="cuda",
        schema="(Tensor A, Tensor B, Tensor(a!) D) -> ()",
    )
    writes.register_fake(nothing)
    return Operators(makes, writes)
