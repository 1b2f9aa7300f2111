"""The expressions over sizes that a manifest holds: read, evaluated, and written as C. Nothing is executed.

Whole numbers, names, `+ - * // %`, and the functions of TIRx that host code needs. Everything else is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from gemmspec.runtime.problem import LoadProblem

Number = int | ast.expr
"""A number, or an expression that `parse` has accepted."""

_DEEPEST = 32


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATORS: dict[type[ast.operator], tuple[Callable[[int, int], int], str]] = {
    ast.Add: (lambda a, b: a + b, "({} + {})"),
    ast.Sub: (lambda a, b: a - b, "({} - {})"),
    ast.Mult: (lambda a, b: a * b, "({} * {})"),
    ast.FloorDiv: (lambda a, b: a // b, "floor_div({}, {})"),
    ast.Mod: (lambda a, b: a % b, "floor_mod({}, {})"),
}
_FUNCTIONS: dict[str, tuple[Callable[[int, int], int], str]] = {
    "truncdiv": (_truncated, "({} / {})"),
    "truncmod": (lambda a, b: a - _truncated(a, b) * b, "({} % {})"),
    "floordiv": (lambda a, b: a // b, "floor_div({}, {})"),
    "floormod": (lambda a, b: a % b, "floor_mod({}, {})"),
    "min": (min, "least({}, {})"),
    "max": (max, "most({}, {})"),
}


def parse(number: int | str) -> Number:
    """Return a number of a manifest as it is evaluated. Raises `LoadProblem` for what is no such number."""
    if isinstance(number, int):
        return number
    try:
        node = ast.parse(number, mode="eval").body
        _check(node, number, _DEEPEST)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise LoadProblem(f"`{number}` is no expression over sizes") from error
    return node


def names_of(number: Number) -> set[str]:
    """Return the sizes that a number depends on."""
    return set() if isinstance(number, int) else {n.id for n in ast.walk(number) if isinstance(n, ast.Name)} - {"T"}


def value(number: Number, sizes: Mapping[str, int]) -> int:
    """Return what a number is for these sizes."""
    match number:
        case int():
            return number
        case ast.Constant(value=int(constant)):
            return constant
        case ast.Name(id=name):
            return sizes[name]
        case ast.UnaryOp(operand=operand):
            return -value(operand, sizes)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)][0](value(left, sizes), value(right, sizes))
        case ast.Call(args=[first, second]):
            return _FUNCTIONS[_called(number)][0](value(first, sizes), value(second, sizes))
        case _:
            raise AssertionError("parse lets nothing else pass")


def c_text(number: Number, names: Mapping[str, str]) -> str:
    """Return a number as a C expression of type int64_t; `names`: what the sizes are called there.

    The text calls floor_div, floor_mod, least and most, which the C file defines.
    """
    match number:
        case int():
            return str(number)
        case ast.Constant(value=int(constant)):
            return str(constant)
        case ast.Name(id=name):
            return f"(int64_t){names[name]}"
        case ast.UnaryOp(operand=operand):
            return f"(-{c_text(operand, names)})"
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)][1].format(c_text(left, names), c_text(right, names))
        case ast.Call(args=[first, second]):
            return _FUNCTIONS[_called(number)][1].format(c_text(first, names), c_text(second, names))
        case _:
            raise AssertionError("parse lets nothing else pass")


def _check(node: ast.expr, text: str, depth: int) -> None:
    if depth == 0:
        raise LoadProblem(f"`{text[:60]}...` is too deep an expression")
    match node:
        case ast.Constant(value=bool()):
            parts: list[ast.expr] = []
        case ast.Constant(value=int()) | ast.Name():
            return
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            parts = [operand]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            parts = [left, right]
        case ast.Call(args=[first, second], keywords=[]) if _called(node) in _FUNCTIONS:
            parts = [first, second]
        case _:
            parts = []
    if not parts:
        raise LoadProblem(f"`{ast.unparse(node)}` in `{text}` is no arithmetic over sizes")
    for part in parts:
        _check(part, text, depth - 1)


def _called(call: ast.Call) -> str:
    """Return the function of `T.truncdiv(a, b)` or `truncdiv(a, b)`."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="T"), attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""
