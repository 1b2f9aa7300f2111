"""GS122: a barrier has another number of slots than the ring that it guards."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Edit, Fix, Label
from gemmspec.proof.causes import Lack
from gemmspec.proof.judge import Verdict
from gemmspec.rules.protocol.blame import consequence, lacking
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS122", "ring-slots-differ")
def ring_slots_differ(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That a barrier which guards the stages has as many slots as there are stages, where another number does harm.

    ## Why it matters
    Slot and parity follow from the number of slots. With more slots than stages a stage is refilled before its own
    slot says that it is free.

    ## On a GPU
    Wrong tiles from the first time that the ring goes round.

    ## Limits
    Fewer slots than stages only waste memory, and are not reported.
    """
    stages = verdict.protocol.spec.stages
    for gap, blame in lacking(verdict, Lack.SLOTS):
        slots, depth = gap.counts
        yield Finding(
            gap.span,
            f"barrier `{gap.plan.name}` has {slots} slots, but guards a ring of {depth} stages",
            f"slot {min(int(slots), int(depth))} of one is slot 0 of the other",
            labels=(Label(stages.span, f"{depth} stages"),),
            notes=(consequence(verdict, blame),),
            helps=("write `[stages]`",),
            fix=Fix("write `[stages]`", (Edit(gap.span, "[stages]"),)),
        )
