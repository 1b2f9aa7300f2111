"""GS118: data goes through a ring, and no barrier brings its slots back."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof.causes import Lack
from gemmspec.proof.judge import Verdict
from gemmspec.proof.ways import slots_between
from gemmspec.rules.protocol.blame import consequence, lacking, one_way
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS118", "ring-without-empty-barrier")
def ring_without_empty_barrier(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That what goes forward through a ring also comes back: stages from the MMA to the producer, accumulators from
    the epilogue to the MMA, receive buffers from a CTA that adds to those that send (`split`).

    ## Why it matters
    With only the forward barrier the source never learns that a slot may be written again. It runs ahead and
    overwrites what is still being read.

    ## On a GPU
    Wrong tiles as soon as the source is faster than the reader; and, since a barrier can then be completed twice
    during one wait, a hang.

    ## Limits
    Finds that no barrier goes back. A barrier that is there and not waited for is `use-without-wait`.
    """
    for gap, blame in lacking(verdict, Lack.ROOM):
        yield Finding(
            gap.span,
            f"`{gap.plan.name}` tells `{gap.role}` that parts of sums have come, but no barrier tells that they have "
            "been added",
            f"`{gap.role}` never learns that its peers' receive buffers are free",
            notes=(consequence(verdict, blame),),
            helps=(f"add `barrier NAME [{gap.role}] {gap.role} -> {gap.role}` below it",),
        )
    for way, blame in one_way(verdict, forward=False):
        source, reader = way.source, way.reader
        what = "the stages" if way.stages else "accumulators"
        passes = f"`{way.given.name}` passes {what}" if way.given else f"{what} go"
        slots = slots_between(verdict.protocol.spec, way)
        yield Finding(
            way.span,
            f"{passes} from `{source}` to `{reader}`, but no barrier passes them back",
            f"`{source}` never learns that `{reader}` is done",
            notes=(consequence(verdict, blame),),
            helps=(f"add `barrier NAME {slots} {reader} -> {source}`",),
        )
