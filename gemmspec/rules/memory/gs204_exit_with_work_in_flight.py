"""GS204: a CTA can end while an asynchronous operation still uses its memory."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof import Fault, Kind
from gemmspec.proof.judge import Verdict
from gemmspec.proof.words import where, who
from gemmspec.rules.memory.hazard import hazards
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS204", "exit-with-work-in-flight")
def exit_with_work_in_flight(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That no CTA exits, and no tensor memory is freed, while an asynchronous operation on its memory or a remote
    arrival is in flight.

    ## Why it matters
    Shared memory and tensor memory of a CTA that has ended belong to the next one.

    ## On a GPU
    "cluster target block not present", an illegal address, or garbage in another kernel.

    ## Limits
    The generator places the drain of the stores and the sync at the end. What a program can get wrong is the order of
    its last commits: only the last one of a thread is observed for all before it.
    """
    protocol = verdict.protocol

    def message(fault: Fault) -> str:
        actor, place = who(protocol.spec, fault.at), where(protocol, fault.place)
        return f"the kernel can end before what {actor} started on {place} is complete"

    yield from hazards(verdict, Kind.EARLY_EXIT, message)
