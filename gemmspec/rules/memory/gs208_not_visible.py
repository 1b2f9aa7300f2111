"""GS208: an access is ordered, but not visible."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof import Fault, Kind
from gemmspec.proof.judge import Verdict
from gemmspec.proof.words import where, who
from gemmspec.rules.memory.hazard import hazards
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS208", "not-visible")
def not_visible(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That an access which is ordered is visible as well: all threads of a warpgroup are done before one of them
    releases for all, `tcgen05.wait::ld` stands between a tensor memory read and the use of its registers, tcgen05
    and proxy fences stand where the PTX ISA asks for them.

    ## Why it matters
    A barrier orders the thread that arrives. What the other 127 threads of its warpgroup still do is not ordered by
    it.

    ## On a GPU
    Garbage in a few rows of a few tiles.

    ## Limits
    The generator places fences and syncs. What a program can get wrong is the arrival of one thread for all.
    """
    protocol = verdict.protocol

    def message(fault: Fault) -> str:
        actor, place = who(protocol.spec, fault.at), where(protocol, fault.place)
        if fault.detail == "one thread for all":
            return f"one thread of {actor} releases {place} for all 128, and the others may still be reading"
        return f"what is in {place} need not be visible to {actor} yet"

    yield from hazards(verdict, Kind.NOT_VISIBLE, message)
