"""GS205: a store buffer is refilled while its TMA store still reads it."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof import Fault, Kind
from gemmspec.proof.judge import Verdict
from gemmspec.proof.words import where, who
from gemmspec.rules.memory.hazard import hazards
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS205", "store-buffer-reused-early")
def store_buffer_reused_early(verdict: Verdict) -> Iterator[Finding]:
    """TODO"""
    protocol = verdict.protocol

    def message(fault: Fault) -> str:
        actor, place = who(protocol.spec, fault.at), where(protocol, fault.place)
        return f"{actor} can refill {place} while its TMA store still reads it"

    yield from hazards(verdict, Kind.OVERWRITE, message, lambda f: f.place.startswith("D"))
