"""GS502: a barrier that orders nothing."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label, Severity
from gemmspec.proof.redundant import redundant
from gemmspec.protocol import Protocol
from gemmspec.rules.rule import Finding, protocol_rule


@protocol_rule("GS502", "redundant-barrier", Severity.ADVICE)
def redundant_barrier(protocol: Protocol) -> Iterator[Finding]:
    """
    ## What it checks
    That the pipeline needs each of its barriers: without it, and all arrivals on it and waits for it, the proof
    fails. Each is tried in turn, the latest declared first.

    ## Why it matters
    It costs an arrival and a wait a time, and a reader who takes it for necessary.

    ## Limits
    Barriers that count the bytes of loads are never tried. Where two barriers do the same, the later one is named.
    """
    for r in redundant(protocol):
        if r.wait is not None:
            continue
        labels: tuple[Label, ...] = ()
        notes = ("the pipeline is proved without it and its waits, too",)
        if r.because:
            other, cover = r.because
            notes += (f"what it orders is ordered by the wait of `{other.role.name}` for `{cover.barrier}`",)
            labels = (Label(cover.span, "this orders as much"),)
        yield Finding(
            r.plan.barrier.name_span,
            f"barrier `{r.plan.name}` orders nothing that is not ordered without it",
            "may be left out",
            labels=labels,
            notes=notes,
            helps=("leave it out, with the statements that name it",),
        )
