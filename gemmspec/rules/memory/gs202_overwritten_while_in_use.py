"""GS202: data is overwritten while it is still read."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof import Fault, Kind
from gemmspec.proof.judge import Verdict
from gemmspec.proof.words import where, who
from gemmspec.rules.memory.hazard import hazards
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS202", "overwritten-while-in-use")
def overwritten_while_in_use(verdict: Verdict) -> Iterator[Finding]:
    """TODO"""
    protocol = verdict.protocol

    def message(fault: Fault) -> str:
        actor, place = who(protocol.spec, fault.at), where(protocol, fault.place)
        other = who(protocol.spec, fault.other) if fault.other else "any role"
        return f"{actor} can overwrite {place} while {other} still reads it"

    yield from hazards(verdict, Kind.OVERWRITE, message, lambda f: not f.place.startswith("D"))
