"""Whether a kernel takes these matrices; and if so, for which M, N and K.

Given views and a manifest, returns the sizes, or raises `ArgumentProblem` with both values that do not agree.
"""

from __future__ import annotations

from collections.abc import Sequence

from gemmspec.runtime.arithmetic import value
from gemmspec.runtime.manifest import ITEM_BYTES, Manifest, Tensor, TensorMap
from gemmspec.runtime.problem import ArgumentProblem
from gemmspec.runtime.view import View, dense

_ALIGNMENT = 16  # bytes: cuTensorMapEncodeTiled, addresses and strides
_LARGEST = 2**31 - 1  # sizes reach the kernel as 32-bit integers


def sizes_of(manifest: Manifest, views: Sequence[View]) -> dict[str, int]:
    """Return the sizes of a call, by the manifest's names."""
    for tensor, view in zip(manifest.tensors, views, strict=True):
        _check_type(manifest, tensor, view)
    sizes = _sizes(manifest, views)
    for tensor, view in zip(manifest.tensors, views, strict=True):
        _check_layout(tensor, view)
    if all(view.shape[0] and view.shape[1] for view in views):
        _check_memory(manifest, views, sizes)
    return sizes


def misfit(manifest: Manifest, shape: tuple[int, int, int]) -> str:
    """Return why a kernel takes no matrices of these M, N and K, wherever they lie; nothing if it does."""
    sizes = dict(zip(manifest.sizes, shape, strict=True))
    for (name, fixed), size in zip(manifest.sizes.items(), shape, strict=True):
        if fixed is not None and fixed != size:
            return f"{name} is fixed at {fixed}"
        if size > _LARGEST:
            return f"{name} = {size}, and a kernel takes up to {_LARGEST}"
    for argument in manifest.arguments:
        if isinstance(argument, TensorMap):
            for bytes_ in (value(stride, sizes) for stride in argument.strides):
                if bytes_ % _ALIGNMENT:
                    tensor = manifest.tensors[argument.tensor].name
                    return f"a row of `{tensor}` is {bytes_} bytes, and must be a multiple of {_ALIGNMENT}"
    return ""


def _check_type(manifest: Manifest, tensor: Tensor, view: View) -> None:
    kernel = f"kernel `{manifest.name}`"
    if view.dtype != tensor.dtype:
        raise ArgumentProblem(f"`{tensor.name}` is {view.dtype}, and {kernel} takes {tensor.dtype}")
    if len(view.shape) != 2:
        shape = " x ".join(map(str, view.shape)) or "a single number"
        raise ArgumentProblem(f"`{tensor.name}` has {len(view.shape)} dimensions ({shape}), and {kernel} takes 2")
    if tensor.role == "D" and not view.writable:
        raise ArgumentProblem(f"`{tensor.name}` is read-only, and {kernel} writes it")


def _sizes(manifest: Manifest, views: Sequence[View]) -> dict[str, int]:
    sizes = {name: size for name, size in manifest.sizes.items() if size is not None}
    seen: dict[str, str] = {}
    for tensor, view in zip(manifest.tensors, views, strict=True):
        for axis, length, what in zip(tensor.shape, view.shape, ("rows", "columns"), strict=True):
            here = f"`{tensor.name}` has {length} {what}"
            if isinstance(axis, int):
                if length != axis:
                    takes = " x ".join(map(str, tensor.shape))
                    raise ArgumentProblem(f"{here}, and kernel `{manifest.name}` takes a `{tensor.name}` of {takes}")
                continue
            if axis in sizes and sizes[axis] != length:
                raise ArgumentProblem(f"{here}, and {seen[axis]}: both are {axis}")
            sizes[axis] = length
            seen.setdefault(axis, here)
            if length > _LARGEST:
                raise ArgumentProblem(f"{here}, and a kernel takes up to {_LARGEST}")
    depth = views[0].shape[1]
    if not depth:
        raise ArgumentProblem(f"`{manifest.tensors[0].name}` has 0 columns, and there is no product over nothing")
    return sizes


def _check_layout(tensor: Tensor, view: View) -> None:
    wanted = dense(view.shape)
    for length, stride, need in zip(view.shape, view.strides, wanted, strict=True):
        if length > 1 and stride != need:
            raise ArgumentProblem(
                f"`{tensor.name}` has strides {view.strides}, and must be row-major without gaps: {wanted}"
            )


def _check_memory(manifest: Manifest, views: Sequence[View], sizes: dict[str, int]) -> None:
    devices = {view.device for view in views}
    if len(devices) > 1:
        places = ", ".join(f"`{t.name}` on {v.device}" for t, v in zip(manifest.tensors, views, strict=True))
        raise ArgumentProblem(f"the matrices are on different devices: {places}")
    for tensor, view in zip(manifest.tensors, views, strict=True):
        if view.pointer % _ALIGNMENT:
            raise ArgumentProblem(
                f"`{tensor.name}` is at {view.pointer:#x}, {view.pointer % _ALIGNMENT} bytes past a multiple of "
                f"{_ALIGNMENT}, and must be at one"
            )
    for argument in manifest.arguments:
        if not isinstance(argument, TensorMap):
            continue
        tensor, columns = manifest.tensors[argument.tensor], views[argument.tensor].shape[1]
        for bytes_ in (value(stride, sizes) for stride in argument.strides):
            if bytes_ % _ALIGNMENT:
                raise ArgumentProblem(
                    f"a row of `{tensor.name}` is {bytes_} bytes ({columns} {tensor.dtype}), and must be a "
                    f"multiple of {_ALIGNMENT} bytes"
                )
    *read, written = zip(manifest.tensors, views, strict=True)
    low, high = _span(*written)
    for tensor, view in read:
        start, end = _span(tensor, view)
        if start < high and low < end:
            raise ArgumentProblem(
                f"`{written[0].name}` at {low:#x}..{high:#x} overlaps `{tensor.name}` at {start:#x}..{end:#x}, "
                "and the kernel reads one while it writes the other"
            )


def _span(tensor: Tensor, view: View) -> tuple[int, int]:
    rows, columns = view.shape
    return view.pointer, view.pointer + rows * columns * ITEM_BYTES[tensor.dtype]
