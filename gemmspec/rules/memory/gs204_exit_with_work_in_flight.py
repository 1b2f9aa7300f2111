"""GS204: a CTA can end while an asynchronous operation still uses its memory."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof import Fault, Kind
from gemmspec.proof.judge import Verdict
from gemmspec.proof.words import where, who
from gemmspec.rules.memory.hazard import hazards
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS204", "exit-with-work-in-flight")
def exit_with_work_in_flight(verdict: Verdict) -> Iterator[Finding]:
    """TODO"""
    protocol = verdict.protocol

    def message(fault: Fault) -> str:
        actor, place = who(protocol.spec, fault.at), where(protocol, fault.place)
        return f"the kernel can end before what {actor} started on {place} is complete"

    yield from hazards(verdict, Kind.EARLY_EXIT, message)
