"""The proof: one execution of the Protocol a trip count decides every deadlock, miscount and race."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import Final

from gemmspec.proof.depths import Depths, Trips
from gemmspec.proof.fault import At, Blocked, Fault, Kind
from gemmspec.proof.faults import Key
from gemmspec.proof.machine import Machine
from gemmspec.protocol import Protocol

__all__ = ["At", "Blocked", "Fault", "Kind", "prove"]


MOST_ITERATIONS: Final = 2048
"""Of a k loop, over all tiles: for barriers that gather the arrivals of one phase over longer, see docs/proof.md."""


def prove(protocol: Protocol) -> tuple[Fault, ...]:
    """Return what goes wrong for some number of k tiles and of tiles; nothing means: for none."""
    depths = Depths.of(protocol)
    counts = depths.k_counts
    found = _found(protocol, depths, counts)
    if depths.long_k and not found:
        found, counts = _hangs_of_long_loops(protocol, depths)
    return tuple(
        replace(
            fault,
            k_tiles=tuple(seen),
            every=len(seen) == len(counts) or (fault.place.split("[")[0] in ("D", "registers") and not depths.k_stores),
            onward=seen[-1] == counts[-1],
        )
        for fault, seen in found.values()
    )


def _hangs_of_long_loops(protocol: Protocol, depths: Depths) -> tuple[dict[Key, tuple[Fault, list[int]]], range]:
    """Return what shows only in k loops longer than several rings, with the counts that show it; and all counts."""

    def wrong(k_tiles: int) -> dict[Key, Fault]:
        return _run(protocol, depths.trips(k_tiles, stores=False))

    counts = range(1, depths.long_k + 1)
    if not wrong(counts[-1]):
        return {}, counts
    # Longer loops hang when shorter ones do.
    least = bisect_left(counts, True, lo=depths.k_counts[-1], key=lambda k: bool(wrong(k)))
    seen = list(counts[least:])
    return {key: (fault, seen) for key, fault in wrong(seen[0]).items()}, counts


def _found(protocol: Protocol, depths: Depths, counts: range) -> dict[Key, tuple[Fault, list[int]]]:
    """Return the faults, each with the numbers of k tiles that show it."""
    found: dict[Key, tuple[Fault, list[int]]] = {}
    for k_tiles in counts:
        trips = depths.trips(k_tiles, stores=k_tiles == counts[-1])
        faults = _run(protocol, trips)
        if depths.first_differs:
            # What is in flight at the end may be so in the first tile only.
            for tiles in range(1, depths.tile + 2):
                faults = {**Machine(protocol, replace(trips, tiles=tiles)).run(), **faults}
        for key, fault in faults.items():
            found.setdefault(key, (fault, []))[1].append(k_tiles)
    return found


def _run(protocol: Protocol, trips: Trips) -> dict[Key, Fault]:
    """Execute for some counts, and for more tiles where a barrier gathers the arrivals of one phase over many."""
    machine = Machine(protocol, trips)
    found, begun = machine.run(), machine.begun()
    while begun and not found and trips.tiles * trips.k < MOST_ITERATIONS:
        trips = replace(trips, tiles=2 * trips.tiles)
        machine = Machine(protocol, trips)
        found, later = machine.run(), machine.begun()
        begun = {cell: n for cell, n in later.items() if n > begun.get(cell, 0)}
    return found
