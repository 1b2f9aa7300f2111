"""What a caller passes as a matrix, read and not copied: torch tensors, `__cuda_array_interface__`, DLPack."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gemmspec.runtime import driver
from gemmspec.runtime.problem import ArgumentProblem, DriverProblem

if TYPE_CHECKING:
    import torch

# Types that a kernel takes, by what others call them. An interface has no name for bf16: it shows two bytes.
_TORCH = {"torch.float16": "f16", "torch.bfloat16": "bf16", "torch.float32": "f32"}
_INTERFACE = {"<f2": "f16", "<f4": "f32", "<V2": "bf16", "|V2": "bf16"}
_CUDA = 2  # kDLCUDA


@dataclass(frozen=True, slots=True)
class View:
    """A matrix on a device. `strides` in elements. `stream`: one that its owner asks others to work on, if it does."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: int
    writable: bool = True
    stream: int | None = None


def torch_type(dtype: str) -> Any:
    """Return a type as torch has it."""
    import torch

    return {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[dtype]


def is_tensor(value: object) -> bool:
    """Whether a value is a torch tensor. Does not import torch."""
    module = sys.modules.get("torch")
    return module is not None and isinstance(value, module.Tensor)


def view_of(name: str, value: Any) -> View:
    """Return the matrix that a caller passed for the tensor of that name. Raises `ArgumentProblem`."""
    if is_tensor(value):
        return _of_tensor(name, value)
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return _of_interface(name, interface)
    if hasattr(value, "__dlpack__"):
        kind = int(value.__dlpack_device__()[0])
        if kind != _CUDA:
            raise ArgumentProblem(f"`{name}` is not on a CUDA device: it is on a DLPack device of kind {kind}")
        try:
            import torch
        except ImportError as error:
            raise ArgumentProblem(f"`{name}` is passed by DLPack, which needs torch to be read") from error
        return _of_tensor(name, torch.from_dlpack(value))
    what = f"{type(value).__module__}.{type(value).__qualname__}"
    raise ArgumentProblem(
        f"`{name}` is of type {what}, and a torch tensor, `__cuda_array_interface__` or DLPack is needed"
    )


def _of_tensor(name: str, tensor: torch.Tensor) -> View:
    if not tensor.is_cuda:
        raise ArgumentProblem(f"`{name}` is on {tensor.device}, and the kernel runs on a CUDA device")
    dtype = str(tensor.dtype)
    return View(
        pointer=tensor.data_ptr(),
        shape=tuple(tensor.shape),
        strides=tuple(tensor.stride()),
        dtype=_TORCH.get(dtype, dtype),
        device=tensor.get_device(),
    )


def _of_interface(name: str, interface: dict[str, Any]) -> View:
    shape = tuple(int(n) for n in interface["shape"])
    pointer, read_only = interface["data"]
    typestr = str(interface["typestr"])
    dtype = _INTERFACE.get(typestr, typestr)
    if interface.get("mask") is not None:
        raise ArgumentProblem(f"`{name}` has a mask, and the kernel knows none")
    strides = interface.get("strides")
    bytes_ = int(typestr[2:]) if typestr[2:].isdigit() else 1
    try:
        device = driver.device_of(int(pointer)) if pointer else 0
    except DriverProblem as problem:
        raise ArgumentProblem(f"`{name}` is at {int(pointer):#x}, which is no address on a device") from problem
    return View(
        pointer=int(pointer),
        shape=shape,
        strides=dense(shape) if strides is None else tuple(int(s) // bytes_ for s in strides),
        dtype=dtype,
        device=device,
        writable=not read_only,
        stream=interface.get("stream"),
    )


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a row-major matrix without gaps."""
    strides: list[int] = []
    step = 1
    for length in reversed(shape):
        strides.insert(0, step)
        step *= max(length, 1)
    return tuple(strides)
