"""Parts of sums between CTAs that share an output tile: stores into a peer's receive buffers, and additions there.

A store is seen by the peer for certain only behind an arrival of the thread that made it (or of one that a sync of the
warpgroup has put behind it). Until then the buffer holds nothing; and nothing once its part has been added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gemmspec.protocol.program import Add, Send
from gemmspec.protocol.tile import receive_slot
from gemmspec.simulate.memory import NAN, Slots, empty
from gemmspec.simulate.problem import Array

if TYPE_CHECKING:
    from gemmspec.simulate.warp import Warp

Flight = tuple[Slots, int, Array]
"""A receive buffer, its slot, and what is on the way to the warp's rows of it."""


def send(warp: Warp, statement: Send) -> list[Flight]:
    """Return what is on the way to the peers of the warp's CTA: their shares of its own rows."""
    machine, cluster = warp.machine, warp.machine.spec.cluster
    acc, place = warp.own_registers(warp.at(statement.acc)), warp.place(statement.span)
    width = acc.shape[1] // cluster.split
    flights: list[Flight] = []
    for owner in statement.writes.of(warp.cta.rank):
        cta = machine.ctas[owner]
        cta.alive()
        slot = warp.at(statement.slot) + receive_slot(machine.spec, warp.cta.rank, owner)
        first = cluster.share(owner) * width
        cta.received.of(slot)[warp.rows] = NAN
        cta.received.version[slot] += 1
        cta.received.by[slot] = place
        flights.append((cta.received, slot, acc[:, first : first + width].copy()))
    return flights


def land(flights: list[Flight], rows: slice) -> None:
    """Let what is on the way be there."""
    for slots, slot, values in flights:
        slots.of(slot)[rows] = values
        slots.version[slot] += 1
    flights.clear()


def add(warp: Warp, statement: Add) -> None:
    """Add all parts of the warp's rows of its CTA's share, in the order of the shares, into the first columns."""
    machine, cluster, rank = warp.machine, warp.machine.spec.cluster, warp.cta.rank
    acc, place = warp.own_registers(warp.at(statement.acc)), warp.place(statement.span)
    width, own = acc.shape[1] // cluster.split, cluster.share(rank)
    parts: list[Array] = []
    for share in range(cluster.split):
        if share == own:
            parts.append(acc[:, own * width : (own + 1) * width].copy())
            continue
        received, slot = warp.cta.received, warp.at(statement.slot) + share - (share > own)
        part = received.of(slot)[warp.rows]
        if machine.first_hazard is None and np.isnan(part).any():
            machine.hazard(f"it adds R[{slot}], which does not hold all data", place, received.by[slot])
        parts.append(part.copy())
        part.fill(NAN)
        received.version[slot] += 1
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    acc[:, :width] = total
    # The registers behind the sum are dead: what is stored of them is garbage.
    acc[:, width:] = empty(acc.shape[0], acc.shape[1] - width)
