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
    """
    ## What it checks
    That what is read belongs to the tile, the k tile and the chunk that the reader means; that an accumulator holds
    the sum over all k tiles when it is read; and that every chunk of a tile is stored.

    ## Why it matters
    Accesses can be in perfect order and still pair the wrong data: a release of the slot before, an accumulator of
    another consumer, a chunk that is read twice.

    ## On a GPU
    Wrong values, the same in every run.

    ## Limits
    Compares who wrote what for which iteration; it does not compute.
    """
    protocol = verdict.protocol

    def message(fault: Fault) -> str:
        actor, place = who(protocol.spec, fault.at), where(protocol, fault.place)
        match fault.detail:
            case "chunks missing":
                return "not every chunk of a tile is stored"
            case "stored twice":
                return f"{actor} stores a chunk of a tile twice"
            case "rows of another consumer":
                return f"{actor} multiplies its rows of A into the accumulator of another consumer"
            case "rows of another CTA":
                return f"{actor} loads its own rows for a CTA that multiplies others"
            case "part of the sum":
                return f"{actor} stores its part of the sum before those of its peers are added"
            case _:
                return f"{actor} uses {place}, which {holds(place)} the data of another tile, k tile or chunk"

    yield from hazards(verdict, Kind.WRONG_DATA, message)


def holds(place: str) -> str:
    """Return the verb that fits a place."""
    return "hold" if place in ("the store buffers", "the registers") or place.startswith("TMEM columns") else "holds"
