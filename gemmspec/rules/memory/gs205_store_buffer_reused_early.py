"""GS205: a store buffer is refilled while its TMA store still reads it."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof import Fault, Kind
from gemmspec.proof.judge import Verdict
from gemmspec.proof.words import where, who
from gemmspec.rules.memory.hazard import hazards
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS205", "store-buffer-reused-early", by_spec=False)
def store_buffer_reused_early(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That a store buffer is refilled only after its TMA store has read it.

    ## Why it matters
    Bulk stores are asynchronous. A ring of buffers deeper or shallower than the stores that may be pending
    overwrites what is being stored.

    ## On a GPU
    Single chunks of a tile hold the values of the chunk after.

    ## Limits
    The generator places the waits, from `buffers`, so no spec is known to lead here; the proof checks it all the
    same.
    """
    protocol = verdict.protocol

    def message(fault: Fault) -> str:
        actor, place = who(protocol.spec, fault.at), where(protocol, fault.place)
        return f"{actor} can refill {place} while its TMA store still reads it"

    yield from hazards(verdict, Kind.OVERWRITE, message, lambda f: f.place.startswith("D"))
