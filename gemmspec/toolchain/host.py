"""Reads the launch out of the host function that TVM makes: tensor maps, argument order, grid.

Given its script, Python text that TVM prints. Only the calls that encode a tensor map or launch the kernel matter,
and the names that their arguments stand for.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from gemmspec.toolchain.manifest import Launch, Number, Scalar, TensorMap


def launch_of(script: str, tensors: Sequence[str]) -> Launch:
    """Return the launch of the one kernel in a host script. `tensors`: what the script calls them."""
    reader = _Reader(tensors)
    reader.visit(ast.parse(script))
    assert reader.launch is not None, "a host function launches its kernel"
    return reader.launch


@dataclass
class _Reader(ast.NodeVisitor):
    tensors: Sequence[str]
    names: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    maps: dict[str, TensorMap] = field(default_factory=dict[str, TensorMap])
    launch: Launch | None = None

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, ast.Name) and node.value is not None:
            # `M: T.let[T.int32] = T.Cast("int32", ...)` reads a size out of an argument: the name is what is meant.
            if not isinstance(node.value, ast.Call):
                self.names[node.target.id] = node.value
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        match node.func:
            case ast.Attribute(attr="tensormap_encode_tiled"):
                self.maps[ast.unparse(node.args[0])] = self._map(node)
            case ast.Attribute(attr="call_ffi_kernel"):
                self.launch = self._launch(node)
            case _:
                self.generic_visit(node)

    def _map(self, call: ast.Call) -> TensorMap:
        options = _options(call)
        rank: int = options["rank"]  # type: ignore[assignment]
        place = call.args[1]
        assert isinstance(place, ast.Call), "T.handle_add_byte_offset(A_1.data, 0)"
        data, offset = place.args
        values = [self._number(arg) for arg in call.args[2:]]
        lengths = (rank, rank - 1, rank, rank)
        starts = [sum(lengths[:i]) for i in range(4)]
        dims, strides, box, steps = (tuple(values[s : s + n]) for s, n in zip(starts, lengths, strict=True))
        return TensorMap(
            tensor=self._tensor(ast.unparse(data).removesuffix(".data")),
            byte_offset=_fixed(self._number(offset)),
            dtype=str(options["descriptor_dtype"]),
            dims=dims,
            strides=strides,
            box=tuple(map(_fixed, box)),
            element_strides=tuple(map(_fixed, steps)),
            interleave=_fixed(options["interleave"]),
            swizzle=_fixed(options["swizzle"]),
            l2_promotion=_fixed(options["l2_promotion"]),
            oob_fill=_fixed(options["oob_fill"]),
        )

    def _tensor(self, view: str) -> str:
        """Return the tensor that a view is of: views are numbered, `A_1`."""
        return next(t for t in self.tensors if view == t or (view.startswith(f"{t}_") and view[len(t) + 1 :].isdigit()))

    def _launch(self, call: ast.Call) -> Launch:
        tags: list[str] = _options(call)["launch_params"]  # type: ignore[assignment]
        name, *rest = call.args
        arguments, values = rest[: len(rest) - len(tags)], rest[len(rest) - len(tags) :]
        given = dict(zip(tags, map(self._number, values), strict=True))
        bx, by, bz = _triple(given, "threadIdx")
        cx, cy, cz = _triple(given, "clusterCtaIdx")
        return Launch(
            kernel=str(ast.literal_eval(name)),
            grid=_triple(given, "blockIdx"),
            block=(_fixed(bx), _fixed(by), _fixed(bz)),
            cluster=(_fixed(cx), _fixed(cy), _fixed(cz)),
            shared_bytes=_fixed(given.get("tirx.use_dyn_shared_memory", 0)),
            programmatic=True,  # as every generated kernel does
            arguments=tuple(self._argument(a) for a in arguments),
        )

    def _argument(self, node: ast.expr) -> TensorMap | Scalar:
        return self.maps.get(ast.unparse(node)) or Scalar(self._number(node))

    def _number(self, node: ast.expr) -> Number:
        """Return a number, or an expression in which only sizes are left."""
        whole = ast.unparse(_Inline(self.names).visit(node))
        return int(whole) if whole.lstrip("-").isdigit() else whole


@dataclass
class _Inline(ast.NodeTransformer):
    """Puts values in place of names, and takes conversions of type off."""

    names: dict[str, ast.expr]

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.visit(self.names[node.id]) if node.id in self.names else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node.func:
            case ast.Attribute(attr="Cast"):
                return self.visit(node.args[1])
            case ast.Attribute(attr="int64" | "uint64" | "int32" | "uint32"):
                return self.visit(node.args[0])
            case _:
                return node


def _options(call: ast.Call) -> dict[str, object]:
    return {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg and k.arg != "ret_ty"}


def _triple(given: dict[str, Number], prefix: str) -> tuple[Number, Number, Number]:
    x, y, z = (given.get(f"{prefix}.{d}", 1) for d in "xyz")
    return x, y, z


def _fixed(value: object) -> int:
    """Return what is a number whatever the sizes are."""
    assert isinstance(value, int), f"a number, not {value!r}"
    return value
