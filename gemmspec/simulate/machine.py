"""One cluster: its CTAs with their barriers and memories, and what all of its warps share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemmspec.protocol.program import BarrierPlan, Protocol, Space
from gemmspec.protocol.schedule import Tile
from gemmspec.protocol.tile import Tiling
from gemmspec.simulate.adversary import Adversary, Entity
from gemmspec.simulate.barriers import Mbarrier, ProtocolFault, ThreadBarrier
from gemmspec.simulate.memory import Accumulators, Slots, Stages
from gemmspec.simulate.outcome import Place
from gemmspec.simulate.problem import Array, Problem

WARPS_OF_WARPGROUP = 4


@dataclass(frozen=True, slots=True)
class Output:
    """D, and which elements of it were stored. `stored` is called with the elements of each store that ends."""

    d: Array
    written: npt.NDArray[np.bool_]
    stored: Callable[[int], None]


class Lane(Entity):
    """Asynchronous operations that end in the order of issue. Each comes with where it was issued, for messages."""

    __slots__ = ("_queue", "origin")

    def __init__(self, adversary: Adversary, kind: str, cta: int) -> None:
        super().__init__(adversary, kind, cta)
        self._queue: deque[tuple[Callable[[], None], object]] = deque()
        self.origin: object = None

    def push(self, operation: Callable[[], None], origin: object) -> None:
        """Issue an operation; it is called when it ends."""
        self._queue.append((operation, origin))
        self.wake()

    def step(self) -> bool:
        operation, self.origin = self._queue.popleft()
        operation()
        return bool(self._queue)


class Cta:
    """What the threads of one CTA share. `rank` is that in the cluster."""

    def __init__(self, protocol: Protocol, tiling: Tiling, rank: int) -> None:
        self.rank = rank
        self.barriers = {
            plan.name: [Mbarrier(_label(plan, i, rank, protocol), plan.arrivals) for i in range(plan.slots)]
            for plan in protocol.barriers
        }
        t = tiling
        # A fill is read by the one consumer whose rows it holds; B by all of them.
        self.a = Stages("A", protocol.buffer("A").slots, t.block_m, t.block_k, readers=1)
        self.b = Stages("B", protocol.buffer("B").slots, t.block_n, t.block_k, readers=t.consumers)
        acc = protocol.buffer("acc")
        columns = acc.size if acc.space is Space.TMEM else t.block_n
        self.acc = Accumulators(acc.slots, t.block_m, columns)
        self.d = Slots("D", protocol.buffer("D").slots, t.block_m, t.chunk)
        parts = max(t.split - 1, 0)
        self.received = Slots("R", t.consumers * parts, t.block_m, t.acc_columns // t.split)
        self.live = 0
        self.sync = ThreadBarrier(lambda: self.live)
        self._named: dict[int, ThreadBarrier] = {}

    def named(self, number: int) -> ThreadBarrier:
        """Return the named barrier for the 128 threads of a warpgroup."""
        if number not in self._named:
            self._named[number] = ThreadBarrier(lambda: WARPS_OF_WARPGROUP)
        return self._named[number]

    def barrier(self, name: str, slot: int) -> Mbarrier:
        """Return an mbarrier, on the way to act on it."""
        self.alive(f"`{name}`")
        slots = self.barriers[name]
        if not 0 <= slot < len(slots):
            raise ProtocolFault("range", f"slot {slot} of `{name}` is used; it has {len(slots)}")
        return slots[slot]

    def alive(self, what: str = "memory") -> None:
        """Fail if all threads have exited, and shared memory may be another's. `what`: what is about to be touched."""
        if not self.live:
            raise ProtocolFault("exited", f"{what} of CTA {self.rank} is touched after it has exited")

    def exit(self) -> None:
        """One warp is through. After the last, memories hold nothing."""
        self.live -= 1
        if self.live:
            self.sync.settle()
            return
        for memory in (self.a, self.b, self.acc, self.d, self.received):
            memory.poison()


class Machine:
    """One cluster that works on its tiles."""

    def __init__(
        self, protocol: Protocol, tiling: Tiling, problem: Problem, output: Output, tiles: Sequence[Tile], seed: int
    ) -> None:
        self.protocol, self.spec, self.tiling = protocol, protocol.spec, tiling
        self.problem, self.output = problem, output
        self.tiles = tiles
        self.k_tiles = tiling.k_tiles(problem.k)
        self.beyond: Tile = (tiling.m_tiles(problem.m), tiling.n_tiles(problem.n))
        self.adversary = Adversary(seed)
        self.plans = {plan.name: plan for plan in protocol.barriers}
        self.ctas = [Cta(protocol, tiling, rank) for rank in range(self.spec.cluster.size)]
        self.live = 0
        self.sync = ThreadBarrier(lambda: self.live)
        self.first_hazard: tuple[str, Place, Place | None] | None = None

    def hazard(self, message: str, place: Place, other: Place | None = None) -> None:
        """Keep the first hazard: what follows is mostly its consequence."""
        if self.first_hazard is None:
            self.first_hazard = (message, place, other)

    def tile(self, index: int) -> Tile:
        """Return the cluster's tile of that number; where there is none, one outside of D."""
        return self.tiles[index] if 0 <= index < len(self.tiles) else self.beyond

    def cta(self, rank: int) -> Cta:
        """Return the CTA of a rank that a mask names; fail if the cluster has none of that rank."""
        if rank >= len(self.ctas):
            raise ProtocolFault("range", f"CTA {rank} is named; the cluster has {len(self.ctas)}")
        return self.ctas[rank]

    def pair(self, rank: int) -> list[Cta]:
        """Return the CTAs that run an MMA together with that one, by rank."""
        first = rank - rank % self.tiling.pair
        return self.ctas[first : first + self.tiling.pair]

    def lane(self, kind: str, cta: Cta) -> Lane:
        """Return a new lane."""
        return Lane(self.adversary, kind, cta.rank)


def _label(plan: BarrierPlan, slot: int, rank: int, protocol: Protocol) -> str:
    where = f" of CTA {rank}" if protocol.spec.cluster.size > 1 else ""
    return f"{plan.name}[{slot}]{where}"
