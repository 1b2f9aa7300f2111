"""GS118: data goes through a ring, and no barrier brings its slots back."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof.causes import Lack
from gemmspec.proof.judge import Verdict
from gemmspec.rules.protocol.blame import consequence, lacking
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS118", "ring-without-empty-barrier")
def ring_without_empty_barrier(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That what goes forward through a ring also comes back: stages from the MMA to the producer, accumulators from
    the epilogue to the MMA.

    ## Why it matters
    With only the forward barrier the source never learns that a slot may be written again. It runs ahead and
    overwrites what is still being read.

    ## On a GPU
    Wrong tiles as soon as the source is faster than the reader; and, since a barrier can then be completed twice
    during one wait, a hang.

    ## Limits
    Finds that no barrier goes back. A barrier that is there and not waited for is `use-without-wait`.
    """
    for gap, blame in lacking(verdict, Lack.WAY_BACK):
        source, waiter = gap.role, gap.plan.barrier.waiters[0].value
        what, them = ("stages", "them") if gap.stages else ("accumulator", "it")
        slots = "[stages]" if gap.stages else f"[{waiter}]"
        yield Finding(
            gap.span,
            f"`{gap.plan.name}` passes the {what} from `{source}` to `{waiter}`, but no barrier passes {them} back",
            f"`{source}` never learns that `{waiter}` is done",
            notes=(consequence(verdict, blame),),
            helps=(f"add `barrier NAME {slots} {waiter} -> {source}`",),
        )
