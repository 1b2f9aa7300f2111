"""Resolves the `gemm` line: the operand layout, the axes, the element types."""

from __future__ import annotations

from gemmspec.diagnostics import Edit, Fix, Label
from gemmspec.model.findings import Findings, replacement, shown
from gemmspec.model.spec import Gemm, Given
from gemmspec.record import record
from gemmspec.source import Span
from gemmspec.syntax.nodes import GemmNode, TensorNode, Word
from gemmspec.vocabulary import DType

DTYPES = tuple(dtype.value for dtype in DType)
FORM = "write `D[M, N] = A[M, K] @ B[N, K]^T`"


@record
class Axes:
    """The three axes of the product by the names that the spec gives them, where they could be told."""

    m: Word
    n: Word
    k: Word

    @property
    def names(self) -> tuple[str, str, str]:
        return self.m.text, self.n.text, self.k.text


def resolve_gemm(node: GemmNode, findings: Findings) -> tuple[Gemm | None, Axes | None]:
    """Return the product and its axes; axes are None where the tensors do not fit together."""
    axes = _axes(node, findings)
    _distinct_tensors(node, findings)
    a, b, d = (_dtype(tensor.dtype, findings) for tensor in (node.left, node.right, node.out))
    _accumulate(node.accumulate, findings)
    if a is None or b is None or d is None:
        return None, axes
    names = (node.out.name.text, node.left.name.text, node.right.name.text)
    return Gemm(a, b, d, DType.F32, node.span, names), axes


def _axes(node: GemmNode, findings: Findings) -> Axes | None:
    tensors = (node.out, node.left, node.right)
    good = True
    for tensor in tensors:
        if len(tensor.axes) != 2:
            message = f"tensor `{shown(tensor.name.text)}` has {len(tensor.axes)} axes, but a matrix has 2"
            findings.error("GS013", message, _axes_span(tensor), helps=(FORM,))
            good = False
    for tensor in (node.out, node.left):
        if tensor.transposed:
            message = f"tensor `{shown(tensor.name.text)}` is transposed, but only the right operand may be"
            findings.error("GS013", message, _head_span(tensor, findings), helps=("delete `^T`",))
            good = False
    if not good:
        return None
    (m, n), (row, k) = node.out.axes, node.left.axes
    if m.text == n.text or row.text == k.text:
        tensor, (first, second) = (node.out, (m, n)) if m.text == n.text else (node.left, (row, k))
        message = f"both axes of `{shown(tensor.name.text)}` are named `{shown(first.text)}`"
        findings.error("GS013", message, second.span, labels=(Label(first.span, "first named here"),), helps=(FORM,))
        return None
    if k.text == m.text:
        _not_k_major(node.left, (k, row), findings)
        return Axes(m, n, row)
    rows_match = _same(row, m, node.left, node.out, findings)
    return Axes(m, n, k) if _right(node, n, k, findings) and rows_match else None


def _right(node: GemmNode, n: Word, k: Word, findings: Findings) -> bool:
    """Say whether the axes of the right operand are N and K, and add a finding where it is not `[N, K]^T`."""
    tensor = node.right
    first, second = tensor.axes
    if tensor.transposed and (first.text, second.text) == (k.text, n.text):
        _not_k_major(tensor, (n, k), findings)
        return True
    if tensor.transposed:
        rows_match = _same(first, n, tensor, node.out, findings)
        return _same(second, k, tensor, node.left, findings) and rows_match
    if (first.text, second.text) == (k.text, n.text):
        _not_k_major(tensor, (n, k), findings)
        return True
    span = _head_span(tensor, findings)
    written = shown(findings.source.snippet(span))
    fix = Fix("write `^T`", (Edit(Span(span.end, span.end), "^T"),)) if second.text == k.text else None
    message = f"right operand `{written}` is not transposed, so its axis `{shown(first.text)}` would be summed over"
    findings.error("GS013", message, span, helps=(f"write `{written}^T`",), fix=fix)
    return fix is not None


def _not_k_major(tensor: TensorNode, order: tuple[Word, Word], findings: Findings) -> None:
    """Say that an operand's innermost axis is not the one that is summed over; `order` is how it must be stored."""
    rows, depth = (shown(axis.text) for axis in order)
    span = _head_span(tensor, findings)
    message = f"operand `{shown(findings.source.snippet(span))}` is not stored with the summed axis `{depth}` innermost"
    notes = ("only K-major operands are supported",)
    name = shown(tensor.name.text)
    helps = (f"store it as `{name}[{rows}, {depth}]`",)
    findings.error("GS013", message, span, notes=notes, helps=helps)


def _same(axis: Word, other: Word, tensor: TensorNode, owner: TensorNode, findings: Findings) -> bool:
    if axis.text == other.text:
        return True
    message = (
        f"axis `{shown(axis.text)}` of `{shown(tensor.name.text)}` stands where "
        f"`{shown(owner.name.text)}` has `{shown(other.text)}`"
    )
    labels = (Label(other.span, "the axis it must match"),)
    findings.error("GS013", message, axis.span, labels=labels, helps=(FORM,))
    return False


def _distinct_tensors(node: GemmNode, findings: Findings) -> None:
    seen: dict[str, Span] = {}
    for tensor in (node.out, node.left, node.right):
        name = tensor.name.text
        if name in seen:
            message = f"two tensors are named `{shown(name)}`"
            findings.error("GS010", message, tensor.name.span, labels=(Label(seen[name], "first named here"),))
        seen.setdefault(name, tensor.name.span)


def _dtype(word: Word, findings: Findings) -> Given[DType] | None:
    text = word.text if word.text in DTYPES else findings.unknown("GS008", "element type", word, DTYPES)
    return Given(DType(text), word.span) if text is not None else None


def _accumulate(word: Word | None, findings: Findings) -> None:
    if word is None or word.text == DType.F32.value:
        return
    if word.text not in DTYPES:
        findings.unknown("GS008", "element type", word, DTYPES)
        return
    message = f"accumulators of `{word.text}` are not supported, only of `f32`"
    findings.error("GS013", message, word.span, helps=("write `f32`",), fix=replacement(word.span, "f32"))


def _axes_span(tensor: TensorNode) -> Span:
    return tensor.axes[0].span.to(tensor.axes[-1].span) if tensor.axes else tensor.name.span


def _head_span(tensor: TensorNode, findings: Findings) -> Span:
    """Return the span of `D[M, N]` or `B[N, K]^T`: the tensor without its element type."""
    head = Span(tensor.span.start, max(tensor.span.start, tensor.dtype.span.start))
    return Span(head.start, head.start + len(findings.source.snippet(head).rstrip()))
