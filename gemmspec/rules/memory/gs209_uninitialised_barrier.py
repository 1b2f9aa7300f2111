"""GS209: a barrier of another CTA is used before its initialisation is known there."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof import Fault, Kind
from gemmspec.proof.judge import Verdict
from gemmspec.proof.words import where, who
from gemmspec.rules.memory.hazard import hazards
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS209", "uninitialised-barrier", by_spec=False)
def uninitialised_barrier(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That no barrier of another CTA is used before its initialisation is known there.

    ## Why it matters
    Barrier initialisation must be fenced and followed by a sync of the cluster, not of the CTA, before the first
    remote arrival or load.

    ## On a GPU
    A hang at the start, in one launch of many.

    ## Limits
    The generator places the fence and the sync, so no spec is known to lead here; the proof checks it all the same.
    """
    protocol = verdict.protocol

    def message(fault: Fault) -> str:
        actor, place = who(protocol.spec, fault.at), where(protocol, fault.place)
        return f"{actor} can reach {place} in a CTA that has not initialised it yet"

    yield from hazards(verdict, Kind.UNINITIALISED, message)
