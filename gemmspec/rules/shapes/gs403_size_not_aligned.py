"""GS403: rows of A, B or D that do not start on 16 bytes."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.model.spec import Spec
from gemmspec.rules.rule import Finding, spec_rule


@spec_rule("GS403", "size-not-aligned")
def size_not_aligned(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    A row of A and of B (K elements) and a row of D (N elements) is a multiple of 16 bytes.

    ## Why it matters
    The distance between rows is a stride of a TMA tensor map, which has to be a multiple of 16 bytes: making the tensor
    map fails at the first launch. Sizes need not divide the tile: TMA fills what lies outside with zeros, and does not
    store it.

    ## Limits
    Sizes that are known only at run time are checked by the launcher. Matrices are taken to be dense.
    """
    gemm, align = spec.gemm, spec.target.tma_alignment
    _, n, k = spec.sizes
    for size, dtype, whose in ((n, gemm.d.value, "D"), (k, gemm.a.value, "A and B")):
        if size.fixed is None or size.fixed * dtype.bytes % align == 0:
            continue
        step = align // dtype.bytes
        padded = -(-size.fixed // step) * step
        yield Finding(
            size.span,
            f"{size.name} is {size.fixed}: rows of {whose} have {size.fixed * dtype.bytes} bytes, "
            f"but TMA takes multiples of {align}",
            helps=(f"pad {whose} to {size.name} = {padded}, the next multiple of {step} elements",),
        )
