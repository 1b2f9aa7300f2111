"""The scheduler: which of the things that can happen does happen next.

Warps and asynchronous operations are alike here: each is an `Entity` that can take a step or cannot. One step in
turn is chosen by priorities that favour some kinds of entity, some CTAs and some single entities, heavily and for
long, and then change. Uniform choice would hardly ever let one load fall behind a whole ring of others, which is
what it takes to see most faults. (The idea of few priority changes: Burckhardt et al., ASPLOS 2010, "PCT".)
"""

from __future__ import annotations

import heapq
import random

from gemmspec.simulate.barriers import Waiter

# Priorities last for some dozens or some thousands of steps: long enough to starve a stage of a ring.
_SHORTEST, _LONGEST = 30, 3000
_JITTERS = (0.02, 0.3, 3.0)


class Entity(Waiter):
    """Something that takes steps. `kind` names what it is: a role, or an asynchronous engine."""

    __slots__ = ("_adversary", "cta", "kind", "leaning", "queued")

    def __init__(self, adversary: Adversary, kind: str, cta: int) -> None:
        self._adversary = adversary
        self.kind, self.cta = kind, cta
        self.leaning = adversary.random()
        self.queued = False

    def step(self) -> bool:
        """Take one step; return whether another may follow at once."""
        raise NotImplementedError

    def wake(self) -> None:
        if not self.queued:
            self._adversary.add(self)


class Adversary:
    """Holds the entities that can take a step, and lets them, one at a time. The seed decides everything."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.random = self._rng.random
        self.steps = 0
        self._heap: list[tuple[float, int, Entity]] = []
        self._serial = 0
        self._until = 0
        self._kinds: dict[str, float] = {}
        self._ctas: dict[int, float] = {}
        self._jitter = 0.0
        self.current: Entity | None = None

    def add(self, entity: Entity) -> None:
        """Take in an entity that can take a step."""
        entity.queued = True
        self._serial += 1
        heapq.heappush(self._heap, (self._key(entity), self._serial, entity))

    def step(self) -> bool:
        """Let one entity take a step; return False when none can."""
        if not self._heap:
            return False
        if self.steps >= self._until:
            self._change()
        self.steps += 1
        entity = heapq.heappop(self._heap)[2]
        entity.queued = False
        self.current = entity
        if entity.step() and not entity.queued:
            self.add(entity)
        return True

    def below(self, n: int) -> int:
        """Return a number from 0 to n - 1."""
        return int(self.random() * n)

    def _key(self, entity: Entity) -> float:
        kinds, ctas = self._kinds, self._ctas
        if entity.kind not in kinds:
            kinds[entity.kind] = self.random()
        if entity.cta not in ctas:
            ctas[entity.cta] = self.random() / 2
        return kinds[entity.kind] + ctas[entity.cta] + entity.leaning / 2 + self._jitter * self.random()

    def _change(self) -> None:
        span = _SHORTEST * (_LONGEST / _SHORTEST) ** self.random()
        self._until = self.steps + int(span)
        self._jitter = _JITTERS[self.below(len(_JITTERS))]
        self._kinds, self._ctas = {}, {}
        self._heap = [(self._key(entity), serial, entity) for _, serial, entity in self._heap]
        heapq.heapify(self._heap)
