"""GS207: data of another tile, k tile or chunk is used."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof import Fault, Kind
from gemmspec.proof.judge import Verdict
from gemmspec.proof.words import where, who
from gemmspec.rules.memory.hazard import hazards
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS207", "wrong-data")
def wrong_data(verdict: Verdict) -> Iterator[Finding]:
    """TODO"""
    protocol = verdict.protocol

    def message(fault: Fault) -> str:
        actor, place = who(protocol.spec, fault.at), where(protocol, fault.place)
        return f"{actor} uses {place}, which holds the data of another tile, k tile or chunk"

    yield from hazards(verdict, Kind.WRONG_DATA, message)
