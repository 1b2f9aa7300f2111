"""The resources of one cluster that take time: mbarriers, tensor cores, the way in and out of an SM.

A `Server` does one thing after the other. What all SMs of the chip share is a server of each CTA with that CTA's
share of the rate: all clusters are alike, so each gets the same.
"""

from __future__ import annotations

from collections.abc import Callable

from gemmspec.protocol.program import Load
from gemmspec.targets.timing import Timing
from gemmspec.timing.memory import Wave
from gemmspec.vocabulary import Operand

Resume = Callable[[], None]


class Server:
    """Takes requests in the order in which they come."""

    __slots__ = ("busy", "free")

    def __init__(self) -> None:
        self.free = 0.0
        self.busy = 0.0
        """Cycles in which it worked."""

    def take(self, now: float, cycles: float) -> float:
        """Serve a request that comes now; return when it is done."""
        start = self.free if self.free > now else now
        self.free = start + cycles
        self.busy += cycles
        return self.free


class Mbarrier:
    """Counts arrivals and bytes; a phase is complete when neither is pending (PTX ISA, mbarrier)."""

    __slots__ = ("_count", "_pending", "_tx", "phases", "waiters")

    def __init__(self, count: int) -> None:
        self._count = count
        self._pending = count
        self._tx = 0
        self.phases = 0
        self.waiters: list[tuple[int, Resume]] = []

    def passes(self, parity: int) -> bool:
        """Say whether a wait for that parity passes now."""
        return (self.phases & 1) != parity

    def arrive(self, count: int) -> None:
        """Count arrivals."""
        self._pending -= count
        if self._pending <= 0 and not self._tx:
            self._complete()

    def expect(self, size: int) -> None:
        """Count bytes that are to come, and one arrival."""
        self._tx += size
        self.arrive(1)

    def land(self, size: int) -> None:
        """Count bytes that have come."""
        self._tx -= size
        if self._pending <= 0 and not self._tx:
            self._complete()

    def _complete(self) -> None:
        self._pending += self._count
        self.phases += 1
        waiters, self.waiters = self.waiters, []
        for parity, resume in waiters:
            if self.passes(parity):
                resume()
            else:
                self.waiters.append((parity, resume))


class CtaEngines:
    """The engines of one CTA's SM."""

    def __init__(self) -> None:
        self.requests = Server()
        self.dram = Server()
        self.ingress = Server()
        self.tensor = Server()
        self.tmem = Server()
        self.egress = Server()


class Loads:
    """When bulk loads land."""

    def __init__(self, timing: Timing, ghz: float, sms: int, cluster: int, ctas: list[CtaEngines]) -> None:
        self._t, self._ctas = timing, ctas
        self._cluster = cluster
        self._l2_chip = timing.l2_bytes * sms
        self._dram_chip = timing.dram_gbs / ghz

    def issue(self, load: Load, cta: int, now: float, wave: Wave) -> dict[int, float]:
        """Issue a load in a CTA; return when it lands in each CTA that it writes."""
        t, engines = self._t, self._ctas[cta]
        sms = wave.clusters * self._cluster
        size = load.bytes
        asked = engines.requests.take(now, size * sms / self._l2_chip)
        latency = float(t.tma_latency)
        missing = wave.misses[load.operand] * size
        if missing:
            asked = max(asked, engines.dram.take(now, missing * sms / self._dram_chip))
            if wave.cold[load.operand]:
                latency += t.dram_latency
        landed: dict[int, float] = {}
        for target in load.writes.of(cta):
            landed[target] = max(asked, self._ctas[target].ingress.take(now, size / t.link_bytes)) + latency
        return landed


def letter(operand: Operand, first: int, count: int, consumers: int) -> str:
    """Return what is loaded, in a few letters: `A`, `A1`, `B`."""
    return operand.value if operand is Operand.B or consumers == 1 or count > 1 else f"{operand.value}{first}"
