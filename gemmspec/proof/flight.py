"""How many stages can hold data at once: an execution with the producer as fast as its waits allow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gemmspec.proof.clocks import seen
from gemmspec.proof.depths import Depths
from gemmspec.proof.machine import Machine
from gemmspec.protocol.program import Load, Protocol

if TYPE_CHECKING:
    from gemmspec.proof.agents import Agent, Step
    from gemmspec.proof.depths import Trips


def most_in_flight(protocol: Protocol, k_tiles: int | None, tiles: int | None) -> int:
    """Return the most stages of a CTA that can be loaded, or under way, and not yet multiplied; 0 where none is loaded.

    For given numbers of k tiles and of tiles of a cluster, or for many (None). Whatever the producer does not know to
    be over may still be in flight, so what it knows at each load (happens-before) decides.
    """
    depths = Depths.of(protocol)
    many = depths.k_counts[-1]
    k = min(k_tiles or many, many)
    trips = depths.trips(k, stores=not protocol.spec.target.has_tmem)
    watch = _Watch(protocol, replace(trips, tiles=min(tiles or trips.tiles, trips.tiles)))
    watch.run()
    return watch.most


class _Watch(Machine):
    """Notes at each load how many stages the producer cannot know to be free."""

    def __init__(self, protocol: Protocol, trips: Trips) -> None:
        super().__init__(protocol, trips)
        self.most = 0

    def _load(self, agent: Agent, step: Step, load: Load) -> None:
        cursor = load.slot.cursor
        if cursor is not None:
            loaded = agent.counts[cursor] - load.slot.lag + 1
            over = min(seen(agent.clock, a.mma_stream) for a in self.agents if a.mma_stream >= 0)
            self.most = max(self.most, loaded - over)
        super()._load(agent, step, load)
