"""GS401: block m or n that no MMA instruction of the target has."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.model.spec import Spec
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.rules.units import count


@spec_rule("GS401", "mma-shape")
def mma_shape(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    One MMA instruction covers block m rows of each CTA and block n columns (times two in a pair): the target has it.

    - sm_100a, one CTA: M 128, N a multiple of 16 up to 256.
    - sm_100a, a pair (an even number of CTAs along M): M 256, which is 128 rows of each CTA; N a multiple of 32 up to
      256, half of it from the B tile of each CTA, so block n is a multiple of 16 up to 128.
    - sm_90a: M 64 a warpgroup, N a multiple of 8 up to 256. `block` counts the rows of one consumer, so two math
      warpgroups under `block 64 x 256 x 64` compute 128 x 256.

    ## Why it matters
    tcgen05.mma takes its shape from a descriptor that nothing checks: a shape that does not exist is undefined
    behaviour. The shapes are those of the PTX ISA (tcgen05.mma, kind::f16; wgmma.mma_async).

    ## Limits
    The M 64 forms of tcgen05.mma are not supported: they leave half of the lanes of tensor memory unused.
    """
    target, block = spec.target, spec.block
    if block.m.value not in target.mma_m:
        rows = " or ".join(str(m) for m in target.mma_m)
        unit = "per CTA" if target.has_tmem else "per warpgroup"
        more = " times the consumers" if not target.has_tmem and block.m.value % target.mma_m[0] == 0 else ""
        yield Finding(
            block.m.span,
            f"block m is {block.m.value}, but an MMA of {target.name} has {rows} rows {unit}",
            notes=(f"block m counts the rows of one consumer: a CTA computes block m{more}",) if more else (),
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
