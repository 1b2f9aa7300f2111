"""GS123: the two sides of a barrier run their loops differently often."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.model.spec import For, Step
from gemmspec.proof.causes import Lack
from gemmspec.proof.judge import Verdict
from gemmspec.rules.protocol.blame import consequence, lacking
from gemmspec.rules.rule import Finding, proof_rule
from gemmspec.source import Span
from gemmspec.vocabulary import LoopKind


@proof_rule("GS123", "trip-counts-disagree")
def trip_counts_disagree(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That the roles on both sides of a barrier use it equally often in a tile, as a formula in the number of k tiles.

    ## Why it matters
    Each tile that one side is short, the two drift apart by that much. The state of a ring is carried from tile to
    tile, so nothing ever brings them together again.

    ## On a GPU
    The first tile may be right. Later ones are wrong, and in the end the side that runs longer waits for ever.

    ## Limits
    A fixed number of iterations that happens to equal the number of k tiles for one K is reported, too: the proof
    is for every K.
    """
    spec = verdict.protocol.spec
    for gap, blame in lacking(verdict, Lack.TRIPS):
        source, waiter = gap.plan.barrier.sources[0].value, gap.plan.barrier.waiters[0].value
        signals, waits = gap.counts
        odd = [span for name in (waiter, source) if (program := spec.program(name)) and (span := _odd(program.body))]
        labels = tuple(
            Label(spec.role(n).name_span, f"{_times(c)} a tile") for n, c in ((source, signals), (waiter, waits))
        )
        yield Finding(
            odd[0] if odd else gap.span,
            f"in one tile `{source}` signals `{gap.plan.name}` {_times(signals)}, but `{waiter}` waits {_times(waits)}",
            "K is the number of k tiles",
            labels=labels,
            notes=(consequence(verdict, blame),),
        )


def _odd(body: tuple[Step, ...]) -> Span | None:
    """Return the head of the first loop that is not simply over tiles, k tiles or chunks."""
    for step in body:
        if isinstance(step, For):
            if step.offset or step.kind is LoopKind.FIXED:
                return step.head
            inner = _odd(step.body)
            if inner:
                return inner
    return None


def _times(count: str) -> str:
    return "once" if count == "1" else f"{count} times"
