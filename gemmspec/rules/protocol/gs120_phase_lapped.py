"""GS120: a barrier can complete two phases while a waiter looks at one parity."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.proof import Kind
from gemmspec.proof.judge import Verdict
from gemmspec.proof.words import effect, for_which_k, when, who
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS120", "phase-lapped")
def phase_lapped(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That between the start of a wait and its end a barrier can complete at most one phase, and that a waiter is
    never a phase ahead of its barrier.

    ## Why it matters
    A parity wait tells odd from even, nothing more. If two phases can complete while one role looks, it finds the
    old parity again and blocks for a phase that has long passed; if it looks too early, the phase before lets it
    through.

    ## On a GPU
    Rare hangs or rare wrong tiles, that come and go with clocks, K and what else runs.

    ## Limits
    Told only where no missing wait, declared value or memory hazard explains it.
    """
    protocol = verdict.protocol
    spec = protocol.spec
    for fault in verdict.faults:
        if fault.kind not in (Kind.LAPPED, Kind.AHEAD):
            continue
        lapped = fault.kind is Kind.LAPPED
        other = fault.other
        labels = (
            (Label(other.span, f"{who(spec, other)} completes the phase here"),)
            if other and other.span != fault.at.span
            else ()
        )
        yield Finding(
            fault.at.span,
            f"`{fault.place.split('[')[0]}` can {'lap' if lapped else 'be ahead of'} {who(spec, fault.at)}: "
            f"{'two phases complete' if lapped else 'a phase is still open'} during one wait",
            "this wait tells only odd from even",
            labels=labels,
            notes=(f"{effect(protocol, fault)}, in {when(fault.at)}, {for_which_k(fault)}",),
        )
