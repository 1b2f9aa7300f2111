"""GS406: a stage whose rows are not whole swizzle atoms."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.model.spec import Spec
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.rules.units import count


@spec_rule("GS406", "swizzle-row")
def swizzle_row(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    A row of a stage, block k elements, is a multiple of 128 bytes: the width of the swizzle atom in which A and B are
    staged. That is block k 64 for 16-bit types. It also makes block k a multiple of the depth of one MMA.

    ## Why it matters
    TMA writes, and the tensor core reads, 128-byte rows whose 16-byte units are permuted by the row number. With a
    narrower row the two disagree on where an element is.

    ## Limits
    The narrower swizzles (64 and 32 bytes) are not supported: they load the banks of shared memory unevenly.
    """
    k, dtype, atom = spec.block.k, spec.gemm.a.value, spec.target.swizzle_bytes
    if k.value * dtype.bytes % atom:
        yield Finding(
            k.span,
            f"a row of {count(k.value, 'element')} is {k.value * dtype.bytes} bytes, not a multiple of the {atom} of a "
            "swizzle atom",
            helps=(f"write a multiple of {atom // dtype.bytes}",),
        )
