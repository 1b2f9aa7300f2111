"""GS401: block m or n that the MMA instructions of the target do not make up."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.model.spec import Spec
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.rules.units import count


@spec_rule("GS401", "mma-shape")
def mma_shape(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    MMA instructions cover block m rows of each CTA and block n columns (times two in a pair): the target has them.

    - sm_100a, one CTA: M 128, N a multiple of 16 up to 256.
    - sm_100a, a pair (an even number of CTAs along M): M 256, which is 128 rows of each CTA; N a multiple of 32 up to
      256, half of it from the B tile of each CTA, so block n is a multiple of 16 up to 128.
    - sm_90a: M 64 or 128 a warpgroup, N a multiple of 8 up to 256. Under M 128 a warpgroup issues two instructions of
      64 rows for each 16 columns of depth, and keeps two accumulators. `block` counts the rows of one consumer, so two
      math warpgroups under `block 64 x 256 x 64` compute 128 x 256, and under `block 128 x 128 x 64` 256 x 128.

    ## Why it matters
    tcgen05.mma takes its shape from a descriptor that nothing checks: a shape that does not exist is undefined
    behaviour. The shapes are those of the PTX ISA (tcgen05.mma, kind::f16; wgmma.mma_async).

    ## Limits
    The M 64 forms of tcgen05.mma are not supported: they leave half of the lanes of tensor memory unused.
    """
    target, block = spec.target, spec.block
    if block.m.value not in target.block_m:
        rows = " or ".join(str(m) for m in target.block_m)
        who = "an MMA" if target.has_tmem else "a warpgroup"
        unit = "has {} rows per CTA" if target.has_tmem else "multiplies {} rows"
        more = not target.has_tmem and block.m.value % target.mma_rows == 0
        note = "block m counts the rows of one consumer: a CTA computes block m times the consumers"
        yield Finding(
            block.m.span,
            f"block m is {block.m.value}, but {who} of {target.name} {unit.format(rows)}",
            notes=(note,) if more else (),
        )
    n, columns, step = block.n.value, block.n.value * spec.pair, target.mma_n_step * spec.pair
    most = target.mma_n_max
    pair = f" ({n} from each CTA of the pair)" if spec.paired else ""
    if columns > most:
        yield Finding(
            block.n.span,
            f"an MMA of {columns} columns{pair} is asked for, but {target.name} has at most {most}",
            f"at most {count(most // spec.pair, 'row')} of B per CTA" if spec.paired else "",
        )
    elif columns % step:
        yield Finding(
            block.n.span,
            f"an MMA of {columns} columns{pair} is asked for, but {target.name} has multiples of {step}",
        )
