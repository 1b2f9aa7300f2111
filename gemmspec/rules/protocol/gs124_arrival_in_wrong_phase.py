"""GS124: an arrival can be counted in a phase that it does not belong to."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.proof import Kind
from gemmspec.proof.judge import Verdict
from gemmspec.proof.words import effect, for_which_k, when, who
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS124", "arrival-in-wrong-phase")
def arrival_in_wrong_phase(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That an arrival can't come before the previous phase of its barrier is complete.

    ## Why it matters
    An mbarrier counts arrivals, not who makes them. If one source can arrive a second time before another has
    arrived once, the phase completes without the other.

    ## On a GPU
    Rare wrong tiles; then a hang, when an arrival is missing at the end.

    ## Limits
    Told only where no missing wait, declared value or memory hazard explains it.
    """
    protocol = verdict.protocol
    spec = protocol.spec
    for fault in verdict.faults:
        if fault.kind is not Kind.MIXED_ARRIVALS:
            continue
        other = fault.other
        labels = (
            (Label(other.span, f"{who(spec, other)} arrives here, in {when(other)}"),)
            if other and other.span != fault.at.span
            else ()
        )
        yield Finding(
            fault.at.span,
            f"{who(spec, fault.at)} can arrive on `{fault.place}` before its previous phase is complete",
            f"arrives here, in {when(fault.at)}",
            labels=labels,
            notes=(f"{effect(protocol, fault)}, {for_which_k(fault)}",),
        )
