"""GS125: a role is declared to wait for a barrier, and does not: what it touches is not ready."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.proof.causes import Lack
from gemmspec.proof.judge import Verdict
from gemmspec.proof.words import doing
from gemmspec.rules.protocol.blame import consequence, lacking
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS125", "use-without-wait")
def use_without_wait(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That a role which a barrier names as its waiter waits for it, where it needs what the barrier says.

    ## Why it matters
    Without the wait nothing orders what the role does after what the other side did: a stage is multiplied before
    it is loaded, or loaded while it is still multiplied.

    ## On a GPU
    Wrong tiles, and since nothing holds the role back, a barrier may then be completed twice during another role's
    wait: a hang.

    ## Limits
    A wait that is there but comes too late is told as the memory hazard that it leads to.
    """
    protocol = verdict.protocol
    for gap, blame in lacking(verdict, Lack.WAIT):
        fault = blame.fault
        sides = [side for side in (fault.at, fault.other) if side]
        own = next((side for side in sides if side.role == gap.role), None)
        program = protocol.spec.program(gap.role)
        span = own.span if own else program.head if program else gap.span
        labels = [Label(gap.span, f"`{gap.role}` is declared to wait for it")]
        labels += [Label(s.span, f"`{s.role}` {doing(s)} here") for s in sides if s.span != span and s is not own]
        yield Finding(
            span,
            f"`{gap.role}` never waits for `{gap.plan.name}`",
            f"nothing holds `{gap.role}` back here",
            labels=tuple(labels),
            notes=(consequence(verdict, blame),),
            helps=(f"add `wait {gap.plan.name}` ahead of it",),
        )
