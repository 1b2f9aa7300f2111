"""What was written and where, before any name is looked up. Made by `parse`, read by `gemmspec.model`.

Vocabularies stay out of the grammar: a role kind is a word that the model checks.
A node keeps the span of each word that a diagnostic may have to point at.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import cast

from gemmspec.record import record
from gemmspec.source import Span


@record
class Word:
    """A name as written."""

    text: str
    span: Span


@record
class Number:
    """A number as written; `text` keeps its base (`0b11`, `0x3`, `1_000`)."""

    value: int
    text: str
    span: Span


@record
class Range:
    """`first` alone, or `first..last` inclusive."""

    first: Number
    last: Number
    span: Span


# One of these may stand as the value of a property or slot.
Value = Word | Number


@record
class Property:
    """A keyword and its values in a role, barrier or schedule line: `arrivals 2`, `at cta 0`, `release after read`.

    `name` is the first word; `values` are all the following words and numbers up to the next property.
    """

    name: Word
    values: tuple[Value, ...]
    span: Span


@record
class TensorNode:
    """`D[M, N] f16` or `B[N, K]^T f16`."""

    name: Word
    axes: tuple[Word, ...]
    transposed: bool
    dtype: Word
    span: Span


@record
class KernelNode:
    name: Word
    span: Span


@record
class TargetNode:
    name: Word
    span: Span


@record
class GemmNode:
    """`gemm D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16 accumulate f32`."""

    out: TensorNode
    left: TensorNode
    right: TensorNode
    accumulate: Word | None
    span: Span


@record
class SizeNode:
    """`M = 4096`, `K = 64..16384`, or a bare name that ends in `dynamic`."""

    name: Word
    value: Range | None
    dynamic: Word | None
    span: Span


@record
class SizesNode:
    sizes: tuple[SizeNode, ...]
    span: Span


@record
class ClusterNode:
    """`cluster 2 x 1`: CTAs along M, along N."""

    dims: tuple[Number, ...]
    span: Span


@record
class BlockNode:
    """`block 128 x 128 x 64`: rows of A, rows of B, depth."""

    dims: tuple[Number, ...]
    span: Span


@record
class CountNode:
    """A keyword with one number: `stages 4`, `accumulators 2`."""

    keyword: Word
    value: Number
    span: Span


@record
class ScheduleNode:
    """`schedule persistent ctas 148 group 8`."""

    kind: Word
    properties: tuple[Property, ...]
    span: Span


@record
class PlacementNode:
    """`on warpgroups 0..1`, `on warpgroup 2 warp 3`, `on warpgroup 2 warps 0..1`."""

    warpgroups: Range
    warps: Range | None
    span: Span


@record
class RoleNode:
    """`role NAME = KIND, KIND on PLACEMENT property...`."""

    name: Word
    kinds: tuple[Word, ...]
    placement: PlacementNode
    properties: tuple[Property, ...]
    span: Span


@record
class SlotsNode:
    """`[stages]`, `[consumer]`, `[consumer x accumulators]`, `[2]`: the factors of the number of slots."""

    factors: tuple[Value, ...]
    span: Span


@record
class BarrierNode:
    """`barrier NAME [slots] A, B -> C property...`; `via`, `arrivals`, `phase`, `at`, `multicast` are properties."""

    name: Word
    slots: SlotsNode | None
    sources: tuple[Word, ...]
    waiters: tuple[Word, ...]
    properties: tuple[Property, ...]
    span: Span


@record
class IndexTerm:
    """`stage`, `stage - 1`, `self`, `3`: one factor of an index. `lag` counts iterations back."""

    base: Value
    lag: int
    span: Span


@record
class RefNode:
    """`tma2mma[stage]`, or the bare name: the index that its slots imply."""

    name: Word
    index: tuple[IndexTerm, ...] | None
    span: Span


@record
class ForNode:
    """`for tile {`, `for k {`, `for k - 1 {`, `for chunk {`, `for 4 {`. `offset` is added to the count."""

    over: Value
    offset: int
    body: tuple[StatementNode, ...]
    head: Span
    span: Span


@record
class IfNode:
    """`if k == first {`, `if k != first {`, `if chunk == last {`, `if chunk != last {`."""

    over: Word
    equal: bool
    which: Word
    body: tuple[StatementNode, ...]
    head: Span
    span: Span


@record
class ActNode:
    """Every other statement: a verb and its operands, in the order written.

    `wait B[i]`, `arrive B[i]`, `commit B[i]`, `expect B[i] BYTES`, `load A B[i]`, `load B[i]`, `mma [i] into 0`,
    `read from 0`, `store`, `retire 1`, `sync cta`. The model checks verb and operands.
    `refs`: names, each with or without an index (a bare operand name such as `A` is one too).
    `index`: a free-standing `[...]`. `tail`: `into`/`from` and its value.
    """

    verb: Word
    refs: tuple[RefNode, ...]
    index: tuple[IndexTerm, ...] | None
    numbers: tuple[Number, ...]
    tail: tuple[Word, Value] | None
    span: Span


StatementNode = ForNode | IfNode | ActNode


@record
class ProgramNode:
    """`program ROLE { ... }`."""

    role: Word
    body: tuple[StatementNode, ...]
    head: Span
    span: Span


ItemNode = (
    KernelNode
    | TargetNode
    | GemmNode
    | SizesNode
    | ClusterNode
    | BlockNode
    | CountNode
    | ScheduleNode
    | RoleNode
    | BarrierNode
    | ProgramNode
)


@record
class SpecNode:
    """All items of a file that could be read, in the order written.

    `unread`: the words on lines that were reported and left out. What one of them names may have been meant to exist.
    """

    items: tuple[ItemNode, ...]
    unread: frozenset[str] = frozenset()


def without_spans(node: object) -> object:
    """Return what a node says as nested tuples, without where it stands: equal where two texts mean the same."""
    if isinstance(node, Span):
        return None
    if isinstance(node, tuple):
        return tuple(without_spans(part) for part in cast("tuple[object, ...]", node))
    if is_dataclass(node):
        return type(node).__name__, *(without_spans(getattr(node, field.name)) for field in fields(node))
    return node
