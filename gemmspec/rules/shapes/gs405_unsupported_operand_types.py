"""GS405: element types that the target's MMA does not multiply."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.model.spec import Spec
from gemmspec.rules.rule import Finding, spec_rule


@spec_rule("GS405", "unsupported-operand-types")
def unsupported_operand_types(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    A and B have one element type, which the MMA of the target takes; D has one that the epilogue can write.

    ## Why it matters
    wgmma takes two operands of one type, and the kernels that gemmspec writes for tcgen05 (kind::f16) do so too. f32
    operands would need kind::tf32, which rounds them.

    ## Limits
    tf32, fp8 and block-scaled types are not supported yet.
    """
    gemm, target = spec.gemm, spec.target
    known = ", ".join(t.value for t in target.operand_types)
    odd = [given for given in (gemm.a, gemm.b) if given.value not in target.operand_types]
    for given in odd:
        yield Finding(given.span, f"the MMA of {target.name} does not multiply {given.value.value}, only {known}")
    if not odd and gemm.a.value is not gemm.b.value:
        yield Finding(
            gemm.b.span,
            f"the operands have different types, {gemm.a.value.value} and {gemm.b.value.value}",
            labels=(Label(gemm.a.span, f"{gemm.a.value.value} here"),),
        )
    if gemm.d.value not in target.output_types:
        known = ", ".join(t.value for t in target.output_types)
        yield Finding(gemm.d.span, f"the epilogue of {target.name} does not write {gemm.d.value.value}, only {known}")
