"""GS209: a barrier of another CTA is used before its initialisation is known there."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof import Fault, Kind
from gemmspec.proof.judge import Verdict
from gemmspec.proof.words import where, who
from gemmspec.rules.memory.hazard import hazards
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS209", "uninitialised-barrier")
def uninitialised_barrier(verdict: Verdict) -> Iterator[Finding]:
    """TODO"""
    protocol = verdict.protocol

    def message(fault: Fault) -> str:
        actor, place = who(protocol.spec, fault.at), where(protocol, fault.place)
        return f"{actor} can reach {place} in a CTA that has not initialised it yet"

    yield from hazards(verdict, Kind.UNINITIALISED, message)
