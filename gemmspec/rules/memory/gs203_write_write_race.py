"""GS203: two writes of one place are not ordered."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof import Fault, Kind
from gemmspec.proof.judge import Verdict
from gemmspec.proof.words import where, who
from gemmspec.rules.memory.hazard import hazards
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS203", "write-write-race")
def write_write_race(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That two writes of one stage, accumulator or store buffer are ordered.

    ## Why it matters
    Bulk loads complete in any order. If two of them fill one place, which data the reader finds is chance.

    ## On a GPU
    Garbage in some tiles.

    ## Limits
    Told only where no declared value and no missing wait explains it.
    """
    protocol = verdict.protocol

    def message(fault: Fault) -> str:
        actor, place = who(protocol.spec, fault.at), where(protocol, fault.place)
        other = who(protocol.spec, fault.other) if fault.other else "any role"
        return f"{actor} and {other} can write {place} at the same time"

    yield from hazards(verdict, Kind.WRITE_WRITE, message)
