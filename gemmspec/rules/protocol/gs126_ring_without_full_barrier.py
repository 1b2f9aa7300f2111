"""GS126: a ring is filled, and no barrier tells the reader."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof.judge import Verdict
from gemmspec.proof.ways import slots_between
from gemmspec.rules.protocol.blame import consequence, one_way
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS126", "ring-without-full-barrier")
def ring_without_full_barrier(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That a barrier leads from the role that fills a ring to the role that reads it: stages from the producer to the
    MMA, accumulators from the MMA to the epilogue.

    ## Why it matters
    Loads and multiplies are asynchronous, and the roles run on warps of their own. Without that barrier the reader
    does not wait for the data at all.

    ## On a GPU
    Garbage tiles, most of all the first ones, when nothing has been written yet. Loads of a ring that has no
    barrier to count their bytes are not even issued.

    ## Limits
    Finds that no chain of barriers leads to the reader. A barrier that is there and not waited for is
    `use-without-wait`; one on which nothing arrives is `wait-without-arrival`.
    """
    for way, blame in one_way(verdict, forward=True):
        source, reader = way.source, way.reader
        what, them, one = ("stages", "them", "a stage") if way.stages else ("accumulator", "it", "the accumulator")
        back = f", though `{way.given.name}` passes {them} back" if way.given else ""
        slots = slots_between(verdict.protocol.spec, way)
        yield Finding(
            way.span,
            f"no barrier passes the {what} from `{source}` to `{reader}`{back}",
            f"`{reader}` never learns that {one} is filled",
            notes=(consequence(verdict, blame),),
            helps=(f"add `barrier NAME {slots} {source} -> {reader}`",),
        )
