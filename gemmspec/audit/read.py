"""PrimFunc -> `ir.Kernel`: the only place of the audit that touches TVM's nodes.

Nodes are known by their class name, so this imports nothing of TVM. They come untyped: hence `Any`, here only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gemmspec.audit.ir import (
    Attribute,
    Box,
    Call,
    Const,
    Declare,
    Do,
    Expr,
    For,
    Ids,
    If,
    Kernel,
    Let,
    Opaque,
    Read,
    Set,
    Stmt,
    Tensor,
    Text,
    Tile,
    Unknown,
    Var,
    While,
)

Node = Any
"""A TVM object."""

BINARY = {
    "Add": "+", "Sub": "-", "Mul": "*", "FloorDiv": "//", "FloorMod": "%", "Div": "/", "Mod": "mod", "Min": "min",
    "Max": "max", "EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "And": "&", "Or": "|",
    "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "LShift": "<<", "RShift": ">>",
}  # fmt: skip
_NAMED = {
    "tirx.bitwise_and": "&", "tirx.bitwise_or": "|", "tirx.bitwise_xor": "^", "tirx.shift_left": "<<",
    "tirx.shift_right": ">>", "tirx.truncdiv": "/", "tirx.truncmod": "mod", "tirx.if_then_else": "select",
}  # fmt: skip
# For.kind: serial 0, parallel 1, vectorized 2, unrolled 3 (tvm/tirx/stmt.py, ForKind).
_SERIAL, _UNROLLED = 0, 3


def read(prim_func: object) -> Kernel:
    """Return a PrimFunc as plain data."""
    return _Reader().kernel(prim_func)


class _Reader:
    """Keeps each variable and tensor as one object, by the identity that TVM hashes on."""

    def __init__(self) -> None:
        self.vars: dict[int, Var] = {}
        self.tensors: dict[int, Tensor] = {}
        self.expressions: dict[str, Callable[[Node], Expr]] = {
            "IntImm": lambda e: Const(int(e.value)),
            "StringImm": lambda e: Text(str(e.value)),
            "Var": self.var,
            "Cast": lambda e: self.expr(e.value),
            "Not": lambda e: Call("not", (self.expr(e.a),)),
            "Select": lambda e: Call("select", self.all((e.condition, e.true_value, e.false_value))),
            "TensorLoad": lambda e: Read(self.tensor(e.source), self.all(e.indices)),
            "TensorRegion": self.box,
            "Call": self.call,
            "int": lambda e: Const(int(e)),
            "bool": lambda e: Const(int(e)),
            "str": lambda e: Text(str(e)),
            "String": lambda e: Text(str(e)),
            "Shuffle": lambda e: Call(f"shuffle {' '.join(str(int(i)) for i in e.indices)}", self.all(e.vectors)),
        }
        self.expressions.update({name: self.binary(op) for name, op in BINARY.items()})
        self.statements: dict[str, Callable[[Node, list[Stmt]], None]] = {
            "SeqStmt": self.sequence,
            "AttrStmt": self.attribute,
            "IfThenElse": self.branch,
            "For": self.loop,
            "While": lambda s, out: out.append(While(self.expr(s.condition), self.block(s.body))),
            "Bind": lambda s, out: out.append(Let(self.plain_var(s.var), self.expr(s.value))),
            "BufferStore": lambda s, out: out.append(
                Set(self.tensor(s.buffer), self.all(s.indices), self.expr(s.value))
            ),
            "DeclBuffer": self.view,
            "AllocBuffer": lambda s, out: out.append(Declare(self.tensor(s.buffer))),
            "ScopeIdDefStmt": self.ids,
            "Evaluate": self.evaluate,
            "TilePrimitiveCall": self.tile,
        }

    def kernel(self, prim_func: Node) -> Kernel:
        params = tuple(self.tensor(p) for p in prim_func.params if _is_tensor(p))
        return Kernel(params, self.block(prim_func.body))

    def expr(self, e: Node) -> Expr:
        known = self.expressions.get(type(e).__name__)
        return known(e) if known else Opaque(f"{type(e).__name__} {e}")

    def all(self, several: Node) -> tuple[Expr, ...]:
        return tuple([self.expr(e) for e in several])

    def plain_var(self, e: Node) -> Var:
        key = hash(e)
        if key not in self.vars:
            self.vars[key] = Var(key, str(e.name))
        return self.vars[key]

    def var(self, e: Node) -> Expr:
        return self.tensor(e) if _is_tensor(e) else self.plain_var(e)

    def tensor(self, e: Node) -> Tensor:
        key = hash(e)
        known = self.tensors.get(key)
        if known is None:
            shape, columns = self.all(e.shape), self.all(e.allocated_addr)
            scope, offset = str(e.scope()), self.expr(e.elem_offset)
            layout = str(e.layout) if scope == "tmem" or (scope == "local" and len(shape) > 1) else ""
            swizzle = _swizzle(e) if scope == "shared.dyn" else 0
            known = Tensor(key, str(e.name), str(e.dtype), scope, shape, offset, None, columns, layout, swizzle)
            self.tensors[key] = known
        return known

    def box(self, e: Node) -> Expr:
        ranges = list(e.region)
        starts, extents = self.all([r.min for r in ranges]), self.all([r.extent for r in ranges])
        return Box(self.tensor(e.source), starts, extents)

    def binary(self, op: str) -> Callable[[Node], Expr]:
        return lambda e: Call(op, (self.expr(e.a), self.expr(e.b)))

    def call(self, e: Node) -> Expr:
        name = str(e.op.name)
        return Call(_NAMED.get(name) or name.removeprefix("tirx."), self.all(e.args))

    def block(self, s: Node) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        self.stmt(s, out)
        return tuple(out)

    def stmt(self, s: Node, out: list[Stmt]) -> None:
        known = self.statements.get(type(s).__name__)
        if known:
            known(s, out)
        else:
            out.append(Unknown(f"{type(s).__name__} {s}"))

    def sequence(self, s: Node, out: list[Stmt]) -> None:
        for each in s.seq:
            self.stmt(each, out)

    def attribute(self, s: Node, out: list[Stmt]) -> None:
        out.append(Attribute(str(s.attr_key), self.expr(s.value)))
        self.stmt(s.body, out)

    def branch(self, s: Node, out: list[Stmt]) -> None:
        other = s.else_case
        out.append(If(self.expr(s.condition), self.block(s.then_case), self.block(other) if other is not None else ()))

    def loop(self, s: Node, out: list[Stmt]) -> None:
        kind = int(s.kind)
        plain = s.thread_binding is None and (s.step is None or int(s.step) == 1)
        if kind not in (_SERIAL, _UNROLLED) or not plain:
            out.append(Unknown(f"For of kind {kind}, step {s.step}"))
            return
        var = self.plain_var(s.loop_var)
        out.append(For(var, self.expr(s.min), self.expr(s.extent), kind == _UNROLLED, self.block(s.body)))

    def view(self, s: Node, out: list[Stmt]) -> None:
        tensor = self.tensor(s.buffer)
        tensor.data = self.expr(s.data)
        out.append(Declare(tensor))

    def ids(self, s: Node, out: list[Stmt]) -> None:
        d = getattr(s, "def")
        extents = self.all(d.extents) if d.extents is not None else ()
        out.append(Ids(int(d.scope), tuple(self.plain_var(v) for v in d.def_ids), extents))

    def evaluate(self, s: Node, out: list[Stmt]) -> None:
        value = self.expr(s.value)
        match value:
            case Const():  # A statement without effect: what `pool.commit()` leaves behind.
                return
            case Call(op, args):
                mods = tuple(a.value for a in args if isinstance(a, Text) and a.value)
                out.append(Do(op, tuple(a for a in args if not isinstance(a, Text)), mods))
            case _:
                out.append(Unknown(f"Evaluate {s.value}"))

    def tile(self, s: Node, out: list[Stmt]) -> None:
        config = {str(k): self.expr(v) for k, v in s.config.items()}
        op = str(s.op.name).removeprefix("tirx.tile.")
        out.append(Tile(op, str(s.scope.name), str(s.dispatch or ""), self.all(s.args), config))


def _swizzle(e: Node) -> int:
    """Return the bytes of a row of a tensor's swizzle atom: 16-byte units, in rows of 2 ** swizzle_len, 8 rows."""
    layout = e.layout
    if type(layout).__name__ != "ComposeLayout":
        return 0
    unit = int(e.dtype.itemsize) << int(layout.per_element)
    return unit << int(layout.swizzle_len) if int(layout.atom_len) == 3 and layout.swizzle_inner else -1


def _is_tensor(e: Node) -> bool:
    return type(e.ty).__name__ == "BufferType"
