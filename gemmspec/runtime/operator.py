"""A kernel as operators of torch: `torch.compile` keeps them in its graph, whole."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gemmspec.runtime.kernel import Kernel

_registered: dict[str, Operators] = {}


@dataclass(frozen=True, slots=True)
class Operators:
    """`matmul(A, B)` returns D; `matmul_into(A, B, D)` writes it, and returns nothing. Neither has a gradient."""

    matmul: Callable[[Any, Any], Any]
    matmul_into: Callable[[Any, Any, Any], None]

    @staticmethod
    def of(kernel: Kernel) -> Operators:
        """Register a kernel with torch. The same machine code is registered once a process."""
        code = hashlib.sha256(kernel.cubin + repr(kernel.manifest.sizes).encode()).hexdigest()[:12]
        name = f"gemmspec::{re.sub('[^A-Za-z0-9_]', '_', kernel.name)}_{code}"
        if name not in _registered:
            _registered[name] = _register(name, kernel)
        return _registered[name]


def _register(name: str, kernel: Kernel) -> Operators:
    import torch

    def matmul(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return kernel(A, B)

    def matmul_into(A: torch.Tensor, B: torch.Tensor, D: torch.Tensor) -> None:
        kernel(A, B, D)

    def like(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A.new_empty((A.shape[0], B.shape[0]), dtype=kernel.torch_dtype)

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
