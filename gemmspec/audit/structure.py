"""What a kernel states once for all threads: shared and tensor memory, parameters, the shape of the launch."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.audit.difference import Difference
from gemmspec.audit.image import Image
from gemmspec.audit.ir import Attribute, Const, Declare, Expr, Tensor, Var
from gemmspec.audit.places import DTYPES, ITEM_BYTES, offset_of, shape_of, size_of
from gemmspec.protocol.memory import smem_bytes, smem_map, swizzle_of, tmem_columns
from gemmspec.protocol.tile import Tiling
from gemmspec.source import Span

# Scope ids as in tvm/tirx/exec_scope.py, _SCOPE_BINDING_TO_PARENT_CUR.
_CTA, _CTA_IN_CLUSTER, _WARPGROUP = 1, 2, 3
_OTHERS = {5: ("warps of a warpgroup", 4), 6: ("threads of a warp", 32), 8: ("threads of a warpgroup", 128)}
_SMEM_BYTES, _CTAS_OF_SM = "tirx.dyn_smem_bytes", "tirx.launch_bounds_min_blocks_per_sm"
_DEVICE = "tirx.device_entry"


def structure(image: Image) -> list[Difference]:
    """Return all differences of structure."""
    return [*_shared_memory(image), *_tensor_memory(image), *_parameters(image), *_launch(image), *_syncs(image)]


def _shared_memory(image: Image) -> Iterator[Difference]:
    protocol = image.protocol
    tensors = {offset_of(t): t for t in _declared(image, "shared.dyn") if t.data is not None}
    spans = {b.name: b.barrier.slots_span for b in protocol.barriers}
    types = _types(image) | {"tmem address": "uint32", "R": "float32"}
    for region in smem_map(protocol.spec):
        tensor, dtype = tensors.pop(region.offset, None), types.get(region.name, "uint64")
        if tensor is None or size_of(tensor) != region.size or tensor.dtype != dtype:
            expected = f"{region.name} at byte {region.offset}: {region.size} bytes of {dtype}"
            found = f"{shape_of(tensor)}, {size_of(tensor)} bytes" if tensor else "nothing there"
            yield Difference("memory", expected, found, spans.get(region.name))
    for start, tensor in tensors.items():
        yield Difference("memory", "no other buffer", f"{tensor.name or 'one'} at byte {start}", None)
    yield from _swizzles(image)
    yield from _same("memory", "bytes of shared memory", smem_bytes(protocol.spec), _attribute(image, _SMEM_BYTES))


def _swizzles(image: Image) -> Iterator[Difference]:
    """Yield operands whose rows are swizzled otherwise than over the widest atom that they consist of."""
    for tensor in _declared(image, "shared.dyn"):
        name = image.places.names.get(offset_of(tensor))
        if name in image.places.widths and tensor.data is not None:
            row = image.places.widths[name] * ITEM_BYTES.get(tensor.dtype, 0)
            yield from _same("memory", f"bytes of the swizzle of {name}", swizzle_of(row), tensor.swizzle)


def _tensor_memory(image: Image) -> Iterator[Difference]:
    for tensor in _declared(image, "tmem"):
        start, width = _number(tensor.columns[0] if tensor.columns else None), _number(tensor.shape[-1])
        yield from _same("memory", "first column of tensor memory", 0, start)
        yield from _same("memory", "columns of tensor memory", tmem_columns(image.protocol.spec), width)


def _parameters(image: Image) -> Iterator[Difference]:
    spec = image.protocol.spec
    sizes = dict(zip("MNK", spec.sizes, strict=True))
    tensors = {image.places.matrices[t.key]: t for t in image.kernel.params if t.key in image.places.matrices}
    for matrix, dims in {"A": "MK", "B": "NK", "D": "MN"}.items():
        tensor = tensors.get(matrix)
        wanted = f"{_types(image)[matrix]} {' x '.join(str(sizes[d].fixed or d) for d in dims)}"
        found = "no such parameter"
        if tensor is not None:
            shape = [_extent(image, e, d) for e, d in zip(tensor.shape, dims, strict=True)]
            found = f"{tensor.dtype} {' x '.join(shape)}"
        if found != wanted:
            yield Difference("launch", f"{matrix}: {wanted}", found, spec.gemm.span)


def _extent(image: Image, extent: Expr, size: str) -> str:
    if isinstance(extent, Var) and image.terms.places.get(extent.key) == image.sizes.get(size, -1):
        return size
    return str(extent.value) if isinstance(extent, Const) else "?"


def _launch(image: Image) -> Iterator[Difference]:
    spec, ids = image.protocol.spec, image.ids()
    yield from _same("launch", "CTAs", Tiling.of(spec).ctas, ids.get(_CTA), spec.schedule.span)
    yield from _same("launch", "CTAs of a cluster", spec.cluster.size, ids.get(_CTA_IN_CLUSTER, 1), spec.cluster.span)
    yield from _same("launch", "warpgroups", image.warpgroups, ids.get(_WARPGROUP))
    if _attribute(image, _DEVICE) != 1:
        yield Difference("launch", "a kernel of the device", "no device_entry", None)
    for scope, (what, extent) in _OTHERS.items():
        yield from _same("launch", what, extent, ids.get(scope, extent))
    if any(r.registers for r in spec.roles):
        # Without the bound, setmaxnreg counts from what the compiler chose for the launch.
        yield from _same("launch", "CTAs of an SM that the compiler plans for", 1, _attribute(image, _CTAS_OF_SM))


def _syncs(image: Image) -> Iterator[Difference]:
    start, end = image.protocol.start_sync, image.protocol.end_sync
    wanted = (start,) if end == "none" else (start, end)
    if image.syncs != wanted:
        expected, found = (", ".join(f"{kind} sync" for kind in kinds) or "none" for kinds in (wanted, image.syncs))
        yield Difference("prologue and end", expected, found, None)


def _types(image: Image) -> dict[str, str]:
    gemm = image.protocol.spec.gemm
    return {"A": DTYPES[gemm.a.value], "B": DTYPES[gemm.b.value], "D": DTYPES[gemm.d.value]}


def _declared(image: Image, scope: str) -> list[Tensor]:
    return [s.tensor for s in image.kernel.body if isinstance(s, Declare) and s.tensor.scope == scope]


def _attribute(image: Image, key: str) -> int | None:
    return next((_number(s.value) for s in image.kernel.body if isinstance(s, Attribute) and s.key == key), None)


def _same(where: str, what: str, expected: int, found: int | None, span: Span | None = None) -> Iterator[Difference]:
    if expected != found:
        yield Difference(where, f"{what}: {expected}", str(found), span)


def _number(e: Expr | None) -> int | None:
    return e.value if isinstance(e, Const) else None
