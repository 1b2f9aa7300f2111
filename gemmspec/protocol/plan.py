"""A barrier with nothing left open: how many arrive in a phase, where, and with which parity its waiters start."""

from __future__ import annotations

from gemmspec.model.spec import Barrier
from gemmspec.protocol.targets import Targets
from gemmspec.record import record
from gemmspec.source import Span
from gemmspec.vocabulary import Via


@record
class Share:
    """What one role contributes to the arrivals of one phase, summed over the CTAs that reach a barrier."""

    role: str
    each: int
    """Arrivals of one instance in one CTA."""
    instances: int
    ctas: int
    span: Span

    @property
    def total(self) -> int:
        return self.each * self.instances * self.ctas


@record
class BarrierPlan:
    """A barrier with nothing left open. `arrivals` and `phase` are what the kernel uses: as declared, else derived."""

    barrier: Barrier
    via: Via
    arrivals: int
    derived_arrivals: int
    shares: tuple[Share, ...]
    phase: int
    derived_phase: int
    targets: Targets
    """Where arrivals land, for each arriving CTA (for tma: where bytes and the expectation are counted)."""
    derived_targets: Targets
    per_k: bool
    """Whether the standard programs use it once a k tile (else once a tile)."""
    exchange: bool = False
    """Whether it orders what CTAs write into each other's receive buffers: its arrivals release, and its waits acquire,
    at cluster scope."""

    @property
    def name(self) -> str:
        return self.barrier.name

    @property
    def slots(self) -> int:
        return self.barrier.slots
