"""What stops a kernel from being loaded or launched, in words for the user."""

from __future__ import annotations


class LoadProblem(Exception):
    """A kernel that cannot be loaded: no such file, another format, a device that it is not built for."""


class ArgumentProblem(ValueError):
    """Tensors that the kernel does not take. Nothing was launched."""


class DriverProblem(RuntimeError):
    """A call that the CUDA driver refused. `status`: its number."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class TableProblem(Exception):
    """A table of measurements that cannot be read or written."""
