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
    """
    ## What it checks
    That a stage or an accumulator is written only after the last read of what it holds is over.

    ## Why it matters
    A release that comes before the read, or that does not track it, hands the slot over too early. A `commit`
    tracks only the multiplies that were issued before it.

    ## On a GPU
    Garbage in some tiles, more often the faster the loads are.

    ## Limits
    Told only where no declared value and no missing wait explains it.
    """
    protocol = verdict.protocol

    def message(fault: Fault) -> str:
        actor, place = who(protocol.spec, fault.at), where(protocol, fault.place)
        other = who(protocol.spec, fault.other) if fault.other else "any role"
        return f"{actor} can overwrite {place} while {other} still reads it"

    yield from hazards(verdict, Kind.OVERWRITE, message, lambda f: not f.place.startswith("D"))
