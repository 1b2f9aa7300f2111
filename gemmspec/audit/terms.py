"""IR expressions -> Python text over `v`, the list of a warp's values.

The first places of `v` say which thread it is; every variable and local scalar of the kernel has one of its own
behind them. One `eval` a statement turns texts into a function, which then runs many times.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

from gemmspec.audit.events import Event
from gemmspec.audit.ir import Box, Call, Const, Expr, Opaque, Read, Tensor, Text, Var

Values = list[int]

# Places of `v`. ELECTED: the lane that `elect_sync` chooses; WARP: within the warpgroup; GIVES_UP: the number of waits
# after which a bounded one gives up, -1 for none.
LANE, ELECTED, RANK, WARPGROUP, WARP, CLUSTER, CLUSTER_SIZE, GIVES_UP, FIRST = range(9)

# The column that a register array holds before anything has been read into it.
UNREAD = -(1 << 20)

_PLACE = re.compile(r"v\[(\d+)\]")
_THREAD = f"(v[{WARPGROUP}] * 128 + v[{WARP}] * 32 + v[{LANE}])"
# TVM's number of (parent, child) -> the id's value (tvm/tirx/exec_scope.py, _SCOPE_BINDING_TO_PARENT_CUR).
_SCOPES = {
    0: f"v[{CLUSTER}]",
    1: f"(v[{CLUSTER}] * v[{CLUSTER_SIZE}] + v[{RANK}])",
    2: f"v[{RANK}]",
    3: f"v[{WARPGROUP}]",
    4: f"(v[{WARPGROUP}] * 4 + v[{WARP}])",
    5: f"v[{WARP}]",
    6: f"v[{LANE}]",
    7: _THREAD,
    8: f"(v[{WARP}] * 32 + v[{LANE}])",
}
_INFIX = {"+", "-", "*", "//", "%", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^", "<<", ">>"}
_CALLS = {"min": "min", "max": "max", "/": "quotient", "mod": "remainder"}


class Unfollowed(Exception):
    """Something in the IR that the audit cannot follow."""


class Terms:
    """Gives variables their places and expressions their text."""

    def __init__(self) -> None:
        self.places: dict[int, int] = {}
        self.inlined: dict[int, str] = {}
        self.count = FIRST

    def place(self, key: int) -> int:
        """Return the place of a variable or tensor in `v`."""
        if key not in self.places:
            self.places[key] = self.count
            self.count += 1
        return self.places[key]

    def spare(self) -> int:
        """Return a place that no variable has."""
        self.count += 1
        return self.count - 1

    def bind_id(self, var: Var, scope: int) -> None:
        """Let a variable stand for a scope id."""
        if scope not in _SCOPES:
            raise Unfollowed(f"scope id {var.name} of kind {scope}")
        self.inlined[var.key] = _SCOPES[scope]

    def text(self, e: Expr) -> str:
        """Return an expression as text."""
        match e:
            case Const(value):
                return str(value)
            case Var(key):
                return self.inlined.get(key) or f"v[{self.place(key)}]"
            case Call(op, args):
                return self._call(op, args)
            case Read(tensor, (Const(0),)) if is_scalar(tensor):
                return f"v[{self.place(tensor.key)}]"
            case Read(tensor):
                raise Unfollowed(f"a value read from {tensor.name or tensor.scope}")
            case Opaque(text):
                raise Unfollowed(text)
            case Text() | Box() | Tensor():
                raise Unfollowed(f"{type(e).__name__} as a number")

    def _call(self, op: str, args: tuple[Expr, ...]) -> str:
        match op, args:
            case ("cuda.elect_sync", ()):
                return f"(v[{LANE}] == v[{ELECTED}])"
            case ("cuda.thread_rank", ()):
                return _THREAD
            case ("not", (a,)):
                return f"(not {self.text(a)})"
            case ("select", (condition, a, b)):
                return f"({self.text(a)} if {self.text(condition)} else {self.text(b)})"
            case (_, (a, b)) if op in _INFIX:
                left, right = self.text(a), self.text(b)
                # `x ^ 0`, `x & True`: what the helper classes leave of their options.
                if right == "0" and op in "+^":
                    return left
                return f"({left} {op} {right})"
            case (_, (a, b)) if op in _CALLS:
                return f"{_CALLS[op]}({self.text(a)}, {self.text(b)})"
            case _:
                raise Unfollowed(f"{op} of {len(args)} operands")

    def offset(self, index: Expr) -> tuple[str, int]:
        """Return an index as a text and a constant to add to it."""
        match index:
            case Const(value):
                return "0", value
            case Call("+", (base, Const(value))):
                return self.text(base), value
            case _:
                return self.text(index), 0


def is_scalar(tensor: Tensor) -> bool:
    """Say whether a tensor is a local variable of one element."""
    return tensor.scope == "local" and len(tensor.shape) == 1 and number(tensor.shape[0]) == 1


def plus(a: str, b: str) -> str:
    """Return the sum of two texts."""
    return b if a == "0" else a if b in ("0", "-0") else f"({a} + {b})"


def times(a: str, n: int) -> str:
    """Return a multiple of a text."""
    return a if a == "0" or n == 1 else f"({a} * {n})"


def number(e: Expr) -> int | None:
    """Return the value of a constant; None for anything else."""
    return e.value if isinstance(e, Const) else None


def varies(text: str) -> bool:
    """Say whether a text's value may differ between the lanes of a warp."""
    return f"v[{LANE}]" in text


def depends_on(text: str) -> tuple[int, ...]:
    """Return the places that a text reads."""
    return tuple(sorted({int(place) for place in _PLACE.findall(text)}))


def pure(text: str) -> bool:
    """Say whether a text depends on nothing but which thread it is."""
    return all(place < FIRST for place in depends_on(text))


def quotient(a: int, b: int) -> int:
    """Divide, rounding towards zero."""
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def remainder(a: int, b: int) -> int:
    """Return what `quotient` leaves."""
    return a - b * quotient(a, b)


def leaders(mask: int, rank: int) -> int:
    """Return the CTAs of a mask, each replaced by the CTA of its pair that has the parity of `rank`."""
    return sum({1 << (r - r % 2 + rank % 2) for r in range(mask.bit_length()) if mask >> r & 1})


def atom_row(byte: int, rows: int, row_bytes: int) -> int:
    """Return the row, counted over all tiles of `rows` rows, in which a byte of a swizzled buffer stands."""
    tile, inside = divmod(byte, rows * row_bytes)
    return tile * rows + inside % (rows * 128) // 128


def atom_column(byte: int, rows: int, row_bytes: int) -> int:
    """Return how many bytes from the start of its row a byte of a swizzled buffer stands, before swizzling."""
    return byte % (rows * row_bytes) // (rows * 128) * 128 + byte % 128


_GLOBALS: dict[str, object] = {f.__name__: f for f in (Event, quotient, remainder, leaders, atom_row, atom_column)}


def function(text: str) -> Callable[[Values], int]:
    """Return the function of `v` that a text is."""
    return cast("Callable[[Values], int]", eval(f"lambda v: {text}", _GLOBALS))


def event_function(verb: str, names: tuple[str, ...], numbers: tuple[str, ...]) -> Callable[[Values], Event]:
    """Return the function of `v` that makes an event."""
    listed = "".join(f"{n}, " for n in numbers)
    return cast("Callable[[Values], Event]", eval(f"lambda v: Event({verb!r}, {names!r}, ({listed}))", _GLOBALS))
