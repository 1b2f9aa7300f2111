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
    """TODO"""
    protocol = verdict.protocol

    def message(fault: Fault) -> str:
        actor, place = who(protocol.spec, fault.at), where(protocol, fault.place)
        return f"what is in {place} need not be visible to {actor} yet"

    yield from hazards(verdict, Kind.NOT_VISIBLE, message)
