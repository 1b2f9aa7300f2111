"""wgmma: descriptors, and the instructions that read through them.

A descriptor's place in `v` holds the address that it starts at, in units of 16 bytes from the start of the pool.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gemmspec.audit.effect import Assign, Effect, Emit, Registers, Settle
from gemmspec.audit.ir import Call, Const, Do, Expr, Read, Tensor
from gemmspec.audit.places import ITEM_BYTES, Places
from gemmspec.audit.terms import Terms, Unfollowed, is_scalar, number, plus

ROWS = 64
"""Rows of one instruction."""
# Bytes of a row of the 128-byte swizzle's atom; a tile's atoms stand below each other, then beside each other.
ATOM = 128
# PTX ISA, wgmma matrix descriptor: rows of 8 follow each other (leading offset unused), 1024 bytes apart, 128B swizzle.
_STRIDES = (1, 64, 3)
_SHAPE = re.compile(r"m64n(\d+)k16")


class Wgmma:
    """Translates the wgmma instructions of one kernel."""

    def __init__(self, terms: Terms, places: Places) -> None:
        self.terms, self.places = terms, places
        self.accumulators = Registers(terms)
        self.described: dict[int, Tensor] = {}
        """Descriptor -> the buffer that it is of."""
        self.instructions: dict[str, Callable[[Do], list[Effect]]] = {
            "cuda.wgmma_encode_matrix_descriptor": self._encode,
            "ptx.wgmma_f16_ss": self._multiply,
            "ptx.wgmma_bf16_ss": self._multiply,
            "ptx.wgmma_fence": lambda do: _exactly(do, Emit("wgmma fence"), "fence"),
            "ptx.wgmma_commit_group": lambda do: _exactly(do, Emit("wgmma commit"), "commit_group"),
            "ptx.wgmma_wait_group": self._wait_group,
        }

    def _wait_group(self, do: Do) -> list[Effect]:
        pending = self.terms.text(do.args[0])
        done = _exactly(do, Emit("retire", (), (pending,)), "wait_group")
        return [*done, Settle(self.accumulators)] if pending == "0" else done

    def _encode(self, do: Do) -> list[Effect]:
        match do.args:
            case (
                Call("address_of", (Read(into, (Const(0),)),)),
                Call("address_of", (Read(tensor, (*outer, row, column)),)),
                *strides,
            ) if tuple(map(number, strides)) == _STRIDES and number(column) == 0 and is_scalar(into):
                return [Assign(self.terms.place(into.key), self._address(into, tensor, tuple(outer), row))]
            case _:
                raise Unfollowed("a matrix descriptor of another form")

    def _address(self, into: Tensor, tensor: Tensor, outer: tuple[Expr, ...], row: Expr) -> str:
        name = self.places.buffer(tensor)
        self.described[into.key] = tensor
        if _row_bytes(tensor) % ATOM:
            raise Unfollowed(f"a descriptor of the 128-byte swizzle on rows of {_row_bytes(tensor)} bytes of {name}")
        shape = [number(n) or 0 for n in tensor.shape]
        tile = "0"
        for index, size in zip(outer, shape, strict=False):
            tile = f"({tile} * {size} + {self.terms.text(index)})"
        start = f"({tile} * {shape[-2] * _row_bytes(tensor)} + {self.terms.text(row)} * {ATOM})"
        return f"({self.places.start(tensor)} + {start}) // 16"

    def _multiply(self, do: Do) -> list[Effect]:
        kind = do.op.removeprefix("ptx.wgmma_").removesuffix("_ss")
        shape = next((m for m in do.mods if _SHAPE.fullmatch(m)), "")
        columns = int(shape[4:].split("k")[0]) if shape else 0
        count = columns // 2
        wanted = ("mma_async", "sync", "aligned", shape, "f32", kind, kind, f"p{count + 2}")
        registers, rest = do.args[:count], do.args[count:]
        # Behind the predicate: neither operand negated, neither transposed.
        if do.mods != wanted or len(rest) != 7 or tuple(map(number, rest[3:])) != (1, 1, 0, 0):
            raise Unfollowed(f"{do.op.removeprefix('ptx.')} {' '.join(do.mods)}")
        held = [(r.tensor, *self.terms.offset(r.indices[0])) for r in registers if isinstance(r, Read)]
        tensor, base, first = held[0]
        in_order = [(tensor.key, base, first + i) for i in range(count)]
        if [(t.key, at, i) for t, at, i in held] != in_order:
            raise Unfollowed("wgmma into registers out of order")
        a, b = self._operand(rest[0], "A"), self._operand(rest[1], "B")
        adds = f"int(bool({self.terms.text(rest[2])}))"
        filled = self.accumulators.fill(self.terms.place(tensor.key), "0")
        return [Emit("wgmma", (f"{shape}.{kind}",), (*a, *b, adds, plus(base, str(first)))), *filled]

    def _operand(self, e: Expr, name: str) -> tuple[str, str]:
        """Return row and column of an operand's whole buffer where a descriptor with an offset starts."""
        desc, offset = _offset(e)
        tensor = self.described.get(desc.key)
        if tensor is None or self.places.buffer(tensor) != name:
            raise Unfollowed(f"a descriptor of {name} that describes something else")
        address = plus(f"v[{self.terms.place(desc.key)}]", self.terms.text(offset))
        rows, row_bytes = number(tensor.shape[-2]), _row_bytes(tensor)
        where = f"{address} * 16 - {self.places.start(tensor)}, {rows}, {row_bytes}"
        return f"atom_row({where})", f"atom_column({where}) // {ITEM_BYTES[tensor.dtype]}"


def _offset(e: Expr) -> tuple[Tensor, Expr]:
    """Return the descriptor and the offset of `smem_desc_add_16B_offset`, which adds to its lower half."""
    match e:
        case Call("reinterpret", (Call("shuffle 0 1", (Call("+", (low, offset)), high)),)):
            match low, high:
                case (
                    Call("shuffle 0", (Call("reinterpret", (Read(desc, (Const(0),)),)),)),
                    Call("shuffle 1", (Call("reinterpret", (Read(same, (Const(0),)),)),)),
                ) if desc.key == same.key:
                    return desc, offset
                case _:
                    pass
        case _:
            pass
    raise Unfollowed("a descriptor with an offset of another form")


def _row_bytes(tensor: Tensor) -> int:
    return (number(tensor.shape[-1]) or 0) * ITEM_BYTES.get(tensor.dtype, 0)


def fragment(columns: int) -> str:
    """Return how 64 rows of so many columns of a wgmma accumulator lie in a warpgroup (PTX ISA, wgmma fragments)."""
    return f"(4, 2, 8, {columns // 8}, 4, 2):(32 @ Axis.tid_in_wg, 2, 4 @ Axis.tid_in_wg, 4, 1 @ Axis.tid_in_wg, 1)"


def laid_out(tensor: Tensor, layout: str) -> None:
    """Check the layout of registers or tensor memory."""
    if tensor.layout != f"T.TileLayout(T.S[{layout}])":
        raise Unfollowed(f"{tensor.name or 'registers'} laid out as {tensor.layout}")


def _exactly(do: Do, emit: Emit, name: str) -> list[Effect]:
    if do.mods != (name, "sync", "aligned"):
        raise Unfollowed(f"{do.op.removeprefix('ptx.')} {' '.join(do.mods)}")
    return [emit]
