"""Made-up records: what a debug build would write down where the proof's execution of the Protocol cannot go on."""

from __future__ import annotations

from gemmspec.proof.agents import Agent
from gemmspec.proof.depths import ALL_CHUNKS, Trips
from gemmspec.proof.fault import Fault, Kind
from gemmspec.proof.machine import Machine
from gemmspec.proof.words import cycle
from gemmspec.protocol.program import Protocol, Wait
from gemmspec.protocol.tile import Tiling
from gemmspec.runtime.waits import HEAD, WORDS
from gemmspec.waits import Waits

Edge = tuple[str, int, int, str, int, int, int, int, int]
"""Role, instance, CTA; barrier, slot; phase, completed, arrivals and bytes that it lacks."""


class Hung:
    """One execution of a Protocol that deadlocks, for `k` k tiles and `tiles` tiles of each cluster."""

    def __init__(self, protocol: Protocol, seconds: float, k: int = 5, tiles: int = 4) -> None:
        self.protocol, self.waits = protocol, Waits(protocol, seconds)
        machine = Machine(protocol, Trips(k, tiles, ALL_CHUNKS))
        faults = machine.run().values()
        self.fault: Fault = next(f for f in faults if f.kind is Kind.DEADLOCK and f.cycle)
        self.stuck = [a for a in machine.agents if not a.finished]
        t = Tiling.of(protocol.spec)
        clusters = t.ctas // protocol.spec.cluster.size
        self.sizes = (t.tile_m * clusters * tiles, t.tile_n, t.block_k * k)

    def words(self, clusters: tuple[int, ...] = (0,), expired: int = 0) -> list[int]:
        """Return the array after clusters stopped so; of each, one role's own time was over: number `expired`."""
        t, size, rows = Tiling.of(self.protocol.spec), self.protocol.spec.cluster.size, self.waits.rows
        words = [0] * (HEAD + t.ctas * rows * WORDS)
        words[0] = 1
        for cluster in clusters:
            for number, agent in enumerate(self.stuck):
                row = self.waits.base(agent.program) + agent.instance
                start = HEAD + ((cluster * size + agent.cta) * rows + row) * WORDS
                words[start : start + WORDS] = self._record(agent, 1 if number == expired else 2)
        return words

    def _record(self, agent: Agent, state: int) -> list[int]:
        step = agent.current
        wait = step.action
        assert isinstance(wait, Wait), "only waits block"
        parity = wait.phase ^ agent.turn(wait.slot)[0] & 1
        slot, site = agent.slot(wait.slot), self.waits.site(wait)
        return [state, site, slot, parity, agent.tile, step.k, agent.waits, 2_000_123]

    @property
    def cycle(self) -> list[Edge]:
        """The proof's cycle."""
        return [
            (
                b.at.role, b.at.instance, b.at.cta, b.barrier, b.slot, b.phase, b.completed, b.pending, b.bytes,
            )
            for b in cycle(self.fault)
        ]  # fmt: skip
