"""The part of TIRx that a kernel uses, as plain data.

The nodes follow TVM's one for one, so that `read` has nothing to decide; what they mean is `machine`'s business.
A node that has no counterpart here becomes `Unknown`, which the audit reports.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Const:
    """A number."""

    value: int


@dataclass(slots=True, eq=False)
class Text:
    """A string operand: a modifier of a PTX instruction."""

    value: str


@dataclass(slots=True, eq=False)
class Var:
    """A variable that is bound once: by a let, a loop, a scope id, or as a size of the parameters."""

    key: int
    name: str


@dataclass(slots=True, eq=False)
class Tensor:
    """A buffer. `offset`: in elements, from the start of `data`, or of the pool; `data`: what it is a view of."""

    key: int
    name: str
    dtype: str
    scope: str
    shape: tuple[Expr, ...]
    offset: Expr
    data: Expr | None = None
    columns: tuple[Expr, ...] = ()
    """Tensor memory: the column that it starts at."""
    layout: str = ""
    """Registers and tensor memory: which element stands where, as TVM prints it."""
    swizzle: int = 0
    """Shared memory: the bytes of a row of the swizzle's atom; 0 for none."""


@dataclass(slots=True, eq=False)
class Read:
    """An element of a tensor."""

    tensor: Tensor
    indices: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class Box:
    """A region of a tensor."""

    tensor: Tensor
    starts: tuple[Expr, ...]
    extents: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class Call:
    """An operator (`+`, `//`, ...) or an intrinsic (`cuda.elect_sync`, `address_of`, ...)."""

    op: str
    args: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class Opaque:
    """An expression that the audit does not know."""

    text: str


Expr = Const | Text | Var | Read | Box | Call | Tensor | Opaque


@dataclass(slots=True, eq=False)
class If:
    condition: Expr
    then: tuple[Stmt, ...]
    other: tuple[Stmt, ...]


@dataclass(slots=True, eq=False)
class For:
    var: Var
    start: Expr
    extent: Expr
    unrolled: bool
    body: tuple[Stmt, ...]


@dataclass(slots=True, eq=False)
class While:
    condition: Expr
    body: tuple[Stmt, ...]


@dataclass(slots=True, eq=False)
class Let:
    var: Var
    value: Expr


@dataclass(slots=True, eq=False)
class Set:
    """A store to an element of a tensor."""

    tensor: Tensor
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(slots=True, eq=False)
class Declare:
    """An allocation, or a view of what is allocated (`tensor.data`)."""

    tensor: Tensor


@dataclass(slots=True, eq=False)
class Ids:
    """Scope ids: `scope` is TVM's number of the pair (parent, child)."""

    scope: int
    vars: tuple[Var, ...]
    extents: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class Attribute:
    """A fact about the kernel, such as its dynamic shared memory."""

    key: str
    value: Expr


@dataclass(slots=True, eq=False)
class Do:
    """An instruction: `mods` are its non-empty string operands, `args` the others."""

    op: str
    args: tuple[Expr, ...]
    mods: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Tile:
    """A tile primitive (`copy_async`, `gemm_async`, `cast`, `copy`)."""

    op: str
    scope: str
    dispatch: str
    args: tuple[Expr, ...]
    config: dict[str, Expr]


@dataclass(slots=True, eq=False)
class Unknown:
    """A statement that the audit does not know."""

    text: str


Stmt = If | For | While | Let | Set | Declare | Ids | Attribute | Do | Tile | Unknown


@dataclass(slots=True, eq=False)
class Kernel:
    """A whole function."""

    params: tuple[Tensor, ...]
    body: tuple[Stmt, ...]
