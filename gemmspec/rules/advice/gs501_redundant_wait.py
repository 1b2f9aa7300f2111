"""GS501: a wait for what is known already."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label, Severity
from gemmspec.proof.redundant import redundant
from gemmspec.protocol import Protocol
from gemmspec.rules.rule import Finding, protocol_rule


@protocol_rule("GS501", "redundant-wait", Severity.ADVICE)
def redundant_wait(protocol: Protocol) -> Iterator[Finding]:
    """
    ## What it checks
    That the pipeline needs each of its waits: without the wait the proof fails. Each is tried in turn.

    ## Why it matters
    A wait for what another wait has made certain costs a poll of shared memory in every iteration. And it can do
    harm that no proof shows: a producer that waits for the accumulator of its tile can't load the next tile's first
    stages while the epilogue runs.

    ## Limits
    Where the whole barrier may go, `redundant-barrier` says so. A barrier's line names who waits for it: a role that
    no longer waits leaves the line, too.
    """
    for r in redundant(protocol):
        if r.wait is None:
            continue
        program, wait = r.wait
        name, role = r.plan.name, program.role.name
        labels: tuple[Label, ...] = ()
        notes = (f"the pipeline is proved without this wait of `{role}`, too",)
        if r.because:
            other, cover = r.because
            where = "it" if other is program else f"`{other.role.name}`"
            notes += (f"what it orders is ordered by the wait of {where} for `{cover.barrier}`",)
            if cover.span != wait.span:
                labels = (Label(cover.span, "this orders as much"),)
        yield Finding(
            wait.span,
            f"`{role}` waits for `{name}`, but knows already what that would tell it",
            "orders nothing that is not ordered without it",
            labels=labels,
            notes=notes,
            helps=("leave the wait out",),
        )
