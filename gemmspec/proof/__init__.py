"""The proof: one execution of the Protocol a trip count decides every deadlock, miscount and race."""

from __future__ import annotations

from dataclasses import replace

from gemmspec.proof.agents import Depths
from gemmspec.proof.fault import At, Blocked, Fault, Kind
from gemmspec.proof.faults import Key
from gemmspec.proof.machine import Machine
from gemmspec.protocol import Protocol

__all__ = ["At", "Blocked", "Fault", "Kind", "prove"]


def prove(protocol: Protocol) -> tuple[Fault, ...]:
    """Return what goes wrong for some number of k tiles and of tiles; nothing means: for none."""
    found: dict[Key, tuple[Fault, list[int]]] = {}
    depths = Depths.of(protocol)
    counts = depths.k_counts
    for k_tiles in counts:
        trips = depths.trips(k_tiles, stores=k_tiles == counts[-1])
        for key, fault in Machine(protocol, trips).run().items():
            found.setdefault(key, (fault, []))[1].append(k_tiles)
    return tuple(
        replace(
            fault,
            k_tiles=tuple(seen),
            every=len(seen) == len(counts) or fault.place.split("[")[0] in ("D", "registers"),
            onward=seen[-1] == counts[-1],
        )
        for fault, seen in found.values()
    )
