"""Makes the node of each grammar rule: `BUILDERS` maps a rule's name to a function of its children and span.

Children are nodes, a `Word` for a name or keyword, a `str` for a punctuation mark. A rule that is not in the table
hands its children up to the rule that uses it. A line that could not be read has no node at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from gemmspec.source import Span
from gemmspec.syntax.nodes import (
    ActNode,
    BarrierNode,
    BlockNode,
    ClusterNode,
    CountNode,
    ForNode,
    GemmNode,
    IfNode,
    IndexTerm,
    ItemNode,
    KernelNode,
    Number,
    PlacementNode,
    ProgramNode,
    Property,
    Range,
    RefNode,
    RoleNode,
    ScheduleNode,
    SizeNode,
    SizesNode,
    SlotsNode,
    SpecNode,
    StatementNode,
    TargetNode,
    TensorNode,
    Value,
    Word,
)

Children = Sequence[object]
T = TypeVar("T")


# What rules hand to the rule that uses them, and no node holds.


class _Names(NamedTuple):
    words: tuple[Word, ...]


class _Index(NamedTuple):
    terms: tuple[IndexTerm, ...]


class _Lag(NamedTuple):
    """`- 1` is -1."""

    value: int


class _Tail(NamedTuple):
    keyword: Word
    value: Value


class _Head(NamedTuple):
    """What stands before the brace of a block."""

    children: Children
    span: Span


class _Body(NamedTuple):
    statements: tuple[StatementNode, ...]


def parse_number(text: str) -> int:
    """Return the value of a NUMBER of the grammar."""
    digits = text.replace("_", "")
    return int(digits, {"0b": 2, "0x": 16}.get(digits[:2].lower(), 10))


def _every(children: Children, kind: type[T]) -> tuple[T, ...]:
    return tuple([c for c in children if isinstance(c, kind)])


def _maybe(children: Children, kind: type[T]) -> T | None:
    for child in children:
        if isinstance(child, kind):
            return child
    return None


def _one(children: Children, kind: type[T]) -> T:
    found = _maybe(children, kind)
    assert found is not None  # the grammar demands it
    return found


def _values(children: Children) -> tuple[Value, ...]:
    return tuple([c for c in children if isinstance(c, (Word, Number))])


def _spec(c: Children, span: Span) -> SpecNode:
    return SpecNode(tuple(item for item in c if isinstance(item, ItemNode)))


def _kernel(c: Children, span: Span) -> KernelNode:
    return KernelNode(_one(c, Word), span)


def _target(c: Children, span: Span) -> TargetNode:
    return TargetNode(_one(c, Word), span)


def _gemm(c: Children, span: Span) -> GemmNode:
    out, left, right = _every(c, TensorNode)
    return GemmNode(out, left, right, _maybe(c, Word), span)


def _tensor(c: Children, span: Span) -> TensorNode:
    name, *axes = _every(c, Word)
    dtype = axes.pop()
    transposed = "^" in c
    if transposed:
        axes.pop()
    return TensorNode(name, tuple(axes), transposed, dtype, span)


def _sizes(c: Children, span: Span) -> SizesNode:
    # In `M, N, K dynamic` the word speaks of all the bare names before it.
    sizes: list[SizeNode] = []
    shared: Word | None = None
    for size in reversed(_every(c, SizeNode)):
        shared = size.dynamic or (shared if size.value is None else None)
        sizes.append(replace(size, dynamic=shared))
    return SizesNode(tuple(reversed(sizes)), span)


def _size(c: Children, span: Span) -> SizeNode:
    name, *dynamic = _every(c, Word)
    return SizeNode(name, _maybe(c, Range), dynamic[0] if dynamic else None, span)


def _cluster(c: Children, span: Span) -> ClusterNode:
    return ClusterNode(_every(c, Number), span)


def _block(c: Children, span: Span) -> BlockNode:
    return BlockNode(_every(c, Number), span)


def _count(c: Children, span: Span) -> CountNode:
    return CountNode(_one(c, Word), _one(c, Number), span)


def _schedule(c: Children, span: Span) -> ScheduleNode:
    return ScheduleNode(_one(c, Word), _every(c, Property), span)


def _role(c: Children, span: Span) -> RoleNode:
    return RoleNode(_one(c, Word), _one(c, _Names).words, _one(c, PlacementNode), _every(c, Property), span)


def _placement(c: Children, span: Span) -> PlacementNode:
    warpgroups, *warps = _every(c, Range)
    return PlacementNode(warpgroups, warps[0] if warps else None, span)


def _barrier(c: Children, span: Span) -> BarrierNode:
    sources, waiters = _every(c, _Names)
    return BarrierNode(_one(c, Word), _maybe(c, SlotsNode), sources.words, waiters.words, _every(c, Property), span)


def _slots(c: Children, span: Span) -> SlotsNode:
    return SlotsNode(_values(c), span)


def _property(c: Children, span: Span) -> Property | None:
    values = _values(c)
    return Property(values[0], values[1:], span) if values and isinstance(values[0], Word) else None


def _names(c: Children, span: Span) -> _Names:
    return _Names(_every(c, Word))


def _program(c: Children, span: Span) -> ProgramNode:
    head = _one(c, _Head)
    return ProgramNode(_one(head.children, Word), _one(c, _Body).statements, head.span, span)


def _for(c: Children, span: Span) -> ForNode:
    head = _one(c, _Head)
    lag = _maybe(head.children, _Lag)
    return ForNode(_values(head.children)[0], lag.value if lag else 0, _one(c, _Body).statements, head.span, span)


def _if(c: Children, span: Span) -> IfNode:
    head = _one(c, _Head)
    _, over, which = _values(head.children)
    # `if k == 0` is read, so that the model can say which words may stand there.
    which = which if isinstance(which, Word) else Word(which.text, which.span)
    assert isinstance(over, Word)
    return IfNode(over, "==" in head.children, which, _one(c, _Body).statements, head.span, span)


def _head(c: Children, span: Span) -> _Head:
    return _Head(c, span)


def _body(c: Children, span: Span) -> _Body:
    return _Body(tuple(s for s in c if isinstance(s, StatementNode)))


def _act(c: Children, span: Span) -> ActNode:
    index, tail = _maybe(c, _Index), _maybe(c, _Tail)
    return ActNode(
        verb=_one(c, Word),
        refs=_every(c, RefNode),
        index=index.terms if index else None,
        numbers=_every(c, Number),
        tail=(tail.keyword, tail.value) if tail else None,
        span=span,
    )


def _ref(c: Children, span: Span) -> RefNode:
    index = _maybe(c, _Index)
    return RefNode(_one(c, Word), index.terms if index else None, span)


def _index(c: Children, span: Span) -> _Index:
    return _Index(_every(c, IndexTerm))


def _term(c: Children, span: Span) -> IndexTerm:
    lag = _maybe(c, _Lag)
    return IndexTerm(_values(c)[0], -lag.value if lag else 0, span)


def _lag(c: Children, span: Span) -> _Lag:
    value = _one(c, Number).value
    return _Lag(-value if "-" in c else value)


def _tail(c: Children, span: Span) -> _Tail:
    keyword, value = _values(c)
    assert isinstance(keyword, Word)
    return _Tail(keyword, value)


def _broken(c: Children, span: Span) -> None:
    return None


def _range(c: Children, span: Span) -> Range:
    numbers = _every(c, Number)
    return Range(numbers[0], numbers[-1], span)


def _negative(c: Children, span: Span) -> Number:
    number = _one(c, Number)
    return Number(-number.value, f"-{number.text}", span)


BUILDERS: dict[str, Callable[[Children, Span], object]] = {
    "spec": _spec,
    "kernel": _kernel,
    "target": _target,
    "gemm": _gemm,
    "tensor": _tensor,
    "sizes": _sizes,
    "size": _size,
    "cluster": _cluster,
    "block": _block,
    "count": _count,
    "schedule": _schedule,
    "role": _role,
    "placement": _placement,
    "barrier": _barrier,
    "slots": _slots,
    "property": _property,
    "names": _names,
    "program": _program,
    "program_head": _head,
    "for": _for,
    "for_head": _head,
    "if": _if,
    "if_head": _head,
    "body": _body,
    "act": _act,
    "ref": _ref,
    "index": _index,
    "term": _term,
    "lag": _lag,
    "tail": _tail,
    "broken": _broken,
    "range": _range,
    "negative": _negative,
}
