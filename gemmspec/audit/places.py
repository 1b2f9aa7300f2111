"""What the tensors of a kernel are, by where they stand: barriers and stages by their byte offset in shared memory."""

from __future__ import annotations

from math import prod

from gemmspec.audit.ir import Const, Kernel, Tensor
from gemmspec.audit.terms import Unfollowed, number
from gemmspec.model.spec import WARPGROUP_THREADS
from gemmspec.protocol.memory import Region, smem_map
from gemmspec.protocol.program import Protocol
from gemmspec.protocol.tile import Tiling
from gemmspec.vocabulary import DType

DTYPES = {DType.F16: "float16", DType.BF16: "bfloat16", DType.F32: "float32"}
ITEM_BYTES = {"uint8": 1, "float16": 2, "bfloat16": 2, "float32": 4, "uint32": 4, "int32": 4, "uint64": 8}
_BUFFERS = ("A", "B", "D")


class Places:
    """The memory map of a Protocol, to look tensors up in."""

    def __init__(self, protocol: Protocol, kernel: Kernel) -> None:
        spec, tiling = protocol.spec, Tiling.of(protocol.spec)
        self.tiling = tiling
        self.regions: dict[int, Region] = {r.offset: r for r in smem_map(spec)}
        self.names: dict[int | None, str] = {offset: r.name for offset, r in self.regions.items()}
        self.barriers = {b.name for b in protocol.barriers}
        self.widths = {"A": tiling.block_k, "B": tiling.block_k, "D": tiling.chunk}
        d, a, b = spec.gemm.names
        operands = {a: "A", b: "B", d: "D"}
        self.matrices = {t.key: operands[t.name] for t in kernel.params if t.name in operands}

    def barrier(self, tensor: Tensor) -> str:
        """Return the barrier whose slots a tensor holds."""
        region = self._region(tensor)
        if region is None or region.name not in self.barriers:
            raise Unfollowed(f"no barrier stands at {where(tensor)}")
        return region.name

    def buffer(self, tensor: Tensor) -> str:
        """Return which of A, B and D a tensor in shared memory holds, having checked that it has the map's rows."""
        region = self._region(tensor)
        if region is None or region.name not in _BUFFERS:
            raise Unfollowed(f"no operand stands at {where(tensor)}")
        if size_of(tensor) != region.size or number(tensor.shape[-1]) != self.widths[region.name]:
            raise Unfollowed(f"the buffer of {region.name} is {shape_of(tensor)}")
        return region.name

    def received(self, tensor: Tensor) -> bool:
        """Say whether a tensor holds the receive buffers: 16 bytes a thread of a warpgroup, row by row."""
        region = self._region(tensor)
        if region is None or region.name != "R":
            return False
        if size_of(tensor) != region.size or tuple(map(number, tensor.shape[-2:])) != (WARPGROUP_THREADS, 4):
            raise Unfollowed(f"the receive buffers are {shape_of(tensor)}")
        return True

    def start(self, tensor: Tensor) -> int:
        """Return the byte at which a tensor in shared memory starts."""
        offset = offset_of(tensor)
        if offset is None:
            raise Unfollowed(f"where {tensor.name or 'a tensor'} stands")
        return offset

    def matrix(self, tensor: Tensor) -> str:
        """Return which of A, B and D in global memory a tensor is."""
        if tensor.key not in self.matrices:
            raise Unfollowed(f"no matrix of the gemm is called {tensor.name or 'nothing'}")
        return self.matrices[tensor.key]

    def is_address_word(self, tensor: Tensor) -> bool:
        """Say whether a tensor is the word that tcgen05.alloc writes."""
        region = self._region(tensor)
        return region is not None and region.name == "tmem address"

    def _region(self, tensor: Tensor) -> Region | None:
        start = offset_of(tensor)
        return self.regions.get(start) if start is not None and tensor.scope == "shared.dyn" else None


def offset_of(tensor: Tensor) -> int | None:
    """Return the byte offset of a tensor in its pool; None where it is not a constant."""
    offset = number(tensor.offset)
    return None if offset is None else offset * ITEM_BYTES.get(tensor.dtype, 0)


def size_of(tensor: Tensor) -> int:
    """Return the bytes of a tensor of constant shape; 0 for one of another."""
    return prod(number(n) or 0 for n in tensor.shape) * ITEM_BYTES.get(tensor.dtype, 0)


def where(tensor: Tensor) -> str:
    """Return where a tensor stands, in words."""
    name = f"{tensor.name} " if tensor.name else ""
    return f"{name}({tensor.scope}, byte {offset_of(tensor)})"


def shape_of(tensor: Tensor) -> str:
    """Return type and shape of a tensor in words."""
    return f"{tensor.dtype} {' x '.join(str(n.value) if isinstance(n, Const) else '?' for n in tensor.shape)}"
