"""GS117: a role waits for a barrier that nobody signals."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.proof.causes import Lack
from gemmspec.proof.judge import Verdict
from gemmspec.protocol.program import Wait
from gemmspec.rules.protocol.blame import consequence, lacking
from gemmspec.rules.rule import Finding, proof_rule
from gemmspec.vocabulary import Via


@proof_rule("GS117", "wait-without-arrival")
def wait_without_arrival(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That for every barrier that is waited for, some program arrives on it.

    ## Why it matters
    A wait that nobody answers blocks for good, once the phases that a fresh barrier lets pass are used up.

    ## On a GPU
    A hang: at the first use, or after the ring has gone round once.

    ## Limits
    Who arrives too rarely is another rule's business: `trip-counts-disagree`, `arrival-count-mismatch`.
    """
    protocol = verdict.protocol
    for gap, blame in lacking(verdict, Lack.ARRIVAL):
        name, source = gap.plan.name, gap.role
        wait = next(s for p in protocol.programs for s in p.walk() if isinstance(s, Wait) and s.barrier == name)
        verb = {Via.COMMIT: "commit", Via.TMA: "expect"}.get(gap.plan.via, "arrive")
        program = protocol.spec.program(source)
        labels = (Label(program.head, f"`{source}`'s program has no `{verb} {name}`"),) if program else ()
        yield Finding(
            wait.span,
            f"`{gap.plan.barrier.waiters[0].value}` waits for `{name}`, but `{source}` never arrives on it",
            "waits here for good",
            labels=labels,
            notes=(consequence(verdict, blame),),
            helps=(f"add `{verb} {name}` to the program of `{source}`",),
        )
