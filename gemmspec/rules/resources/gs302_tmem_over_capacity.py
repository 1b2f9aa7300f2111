"""GS302: the accumulators need more columns of tensor memory than there are."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.model.spec import Spec
from gemmspec.protocol.memory import tmem_map
from gemmspec.protocol.tile import Tiling
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.rules.units import count
from gemmspec.vocabulary import RoleKind


@spec_rule("GS302", "tmem-over-capacity")
def tmem_over_capacity(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    The accumulators of all consumers fit in the tensor memory of an SM. An accumulator has a column for each column of
    the MMA: block n, times two in a pair. Each consumer has `accumulators` of them.

    ## Why it matters
    tcgen05.alloc allocates a power of two of columns. One that can never be met blocks for ever: the kernel hangs at
    its first instruction, with no message.

    ## Limits
    Assumes that one CTA runs on an SM at a time, as persistent kernels do.
    """
    regions = tmem_map(spec)
    have = spec.target.tmem_columns
    if not regions or regions[-1].end <= have:
        return
    tiling, need = Tiling.of(spec), regions[-1].end
    parts = [
        count(tiling.consumers, "consumer"),
        count(tiling.accumulators, "accumulator"),
        count(tiling.acc_columns, "column"),
    ]
    several = spec.accumulators.value > 1
    labels = [Label(r.placement.span, count(r.instances, "consumer")) for r in spec.roles_of(RoleKind.MMA)]
    if several:
        pair = ", times 2 CTAs of the pair" if spec.paired else ""
        labels.append(Label(spec.block.n.span, f"columns of an accumulator{pair}"))
    fit = have // (tiling.acc_columns * tiling.consumers)
    helps = (f"write `accumulators {fit}`",) if several and fit else ("write a smaller block n, or fewer consumers",)
    yield Finding(
        spec.accumulators.span if several else spec.block.n.span,
        f"the accumulators need {need} columns of tensor memory, but {spec.target.name} has {have}",
        labels=tuple(labels),
        notes=(f"{' x '.join(parts)} = {count(need, 'column')}",),
        helps=helps,
    )
