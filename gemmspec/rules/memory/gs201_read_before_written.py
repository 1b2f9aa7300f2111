"""GS201: data is read before it is there."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof import Fault, Kind
from gemmspec.proof.judge import Verdict
from gemmspec.proof.words import where, who
from gemmspec.rules.memory.hazard import hazards
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS201", "read-before-written")
def read_before_written(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That a stage or an accumulator is read only after what is to be read there has been written, in every order of
    events.

    ## Why it matters
    Loads and multiplies are asynchronous: that they were issued says nothing. Only the barrier on which they
    complete orders them before the reader.

    ## On a GPU
    Garbage in some tiles, often only in the first, or only when memory is slow.

    ## Limits
    Told only where no declared value and no missing wait explains it.
    """
    protocol = verdict.protocol

    def message(fault: Fault) -> str:
        actor, place = who(protocol.spec, fault.at), where(protocol, fault.place)
        other = who(protocol.spec, fault.other) if fault.other else "any role"
        return f"{actor} can read {place} before {other} has written it"

    yield from hazards(verdict, Kind.READ_EARLY, message)
