"""One GPU as that which measures: what `tuning` uses where there is one."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gemmspec.runtime import measure
from gemmspec.runtime.card import card
from gemmspec.runtime.kernel import Kernel
from gemmspec.runtime.measure import Beat, Checked, Operands, Shape, Timing
from gemmspec.runtime.table import Setting
from gemmspec.runtime.worker import TooLarge

T = TypeVar("T")


class Gpu:
    """The GPU of that number, as torch counts them. It becomes the current one of the process. Raises `NoGpu`."""

    def __init__(self, number: int) -> None:
        import torch

        if torch.cuda.is_available():
            torch.cuda.set_device(number)
        found = card()
        measure.seed_anew()
        self._torch: Any = torch
        self._operands: Operands | None = None
        self._of: tuple[Shape, str] | None = None
        major, minor = found["capability"].split(".")
        self.capability = int(major), int(minor)
        mhz = found.get("max_sm_mhz", "")
        self.setting = Setting(
            device=found["device"],
            sms=found["sms"],
            mhz=int(mhz) if mhz.isdigit() else 0,
            driver=found.get("driver", ""),
            library=f"torch {found['torch']}, CUDA {found['cuda']}",
        )

    def check(self, kernel: Kernel, shape: Shape) -> Checked:
        """Launch a kernel once, on the inputs that all kernels of these types get at this shape."""
        of = shape, kernel.manifest.types

        def run() -> Checked:
            if self._of != of or self._operands is None:
                self._forget()
                self._operands, self._of = measure.operands_for(kernel, shape), of
            return measure.check(kernel, shape, self._operands)

        return self._in_memory(run, shape)

    def race(self, kernels: Mapping[str, Kernel], shape: Shape, rounds: int, beat: Beat) -> Mapping[str, Timing]:
        """Time kernels beside cuBLAS, in turn."""
        self._forget()
        return self._in_memory(lambda: measure.race(kernels, shape, rounds, beat), shape)

    def _in_memory(self, run: Callable[[], T], shape: Shape) -> T:
        try:
            return run()
        except self._torch.cuda.OutOfMemoryError as error:
            self._forget()
            self._torch.cuda.empty_cache()
            raise TooLarge(f"{' x '.join(map(str, shape))} does not fit into the memory of the GPU") from error

    def _forget(self) -> None:
        self._operands = self._of = None
