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
    """TODO"""
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
