"""mbarriers and memory places, with who did what to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from gemmspec.proof.agents import Agent, Step
from gemmspec.proof.clocks import Clock, raised, seen


class Entry(NamedTuple):
    """An access or arrival: entry `turn` of `stream`, made by a step of an agent, in a tile."""

    stream: int
    turn: int
    agent: Agent
    step: Step
    tile: int


@dataclass(slots=True, eq=False)
class Cell:
    """The mbarrier of one slot in one CTA. A phase completes when no arrivals and no bytes are pending (PTX ISA)."""

    barrier: str
    slot: int
    cta: int
    count: int
    stream: int
    pending: int
    join: Callable[[Clock, Clock], Clock]
    observed: bool = True
    """Whether an agent of its CTA waits for it: how arrivals fall into phases that nobody looks at does not matter."""
    clock: Clock = 0
    bytes: int = 0
    """Transaction bytes expected less bytes landed, in the current phase."""
    completed: int = 0
    done: list[Clock] = field(default_factory=list[Clock])
    """For each completed phase, what is known to whoever sees that it has completed."""
    entries: list[Entry] = field(default_factory=list[Entry])
    """Arrivals and landings in the current phase."""
    past: list[list[Entry]] = field(default_factory=list[list[Entry]])
    """Those of each completed phase."""
    waits: list[tuple[int, Entry]] = field(default_factory=list[tuple[int, Entry]])
    """(phase, wait): the wait must be over before that phase completes."""
    last_tile: list[int] = field(default_factory=list[int])
    """For each completed phase, the latest tile that an arrival belongs to."""
    sleepers: list[Agent] = field(default_factory=list[Agent])
    """Agents blocked on this cell."""
    joined: tuple[int, int] = (-1, -1)
    """(agent, version) whose clock was joined last."""
    landed: Entry | None = None
    """The last load whose bytes were counted here; its turn is the phase."""

    @property
    def place(self) -> str:
        """Its name for messages."""
        return f"{self.barrier}[{self.slot}]"

    @property
    def before(self) -> list[Entry]:
        """The arrivals and landings of the phase before."""
        return self.past[-1] if self.past else []

    @property
    def arrived(self) -> int:
        """Its arrivals so far, each thread's counted."""
        return self.completed * self.count + self.count - self.pending

    def known_over(self, phase: int, clock: Clock) -> bool:
        """Return whether a clock tells that so many phases are over: by the last of them, or by all that made it up."""
        if seen(clock, self.stream) >= phase:
            return True
        return all(seen(clock, e.stream) > e.turn for e in self.past[phase - 1])

    def complete(self) -> list[Entry]:
        """Complete the phase, in which nothing is pending any more: return the waits that should be over by now."""
        phase = self.completed
        self.completed = phase + 1
        self.clock = raised(self.clock, self.stream, phase + 1)
        self.done.append(self.clock)
        self.last_tile.append(max([e.tile for e in self.entries]) if self.entries else 0)
        self.past.append(self.entries)
        self.entries = []
        self.pending = self.count
        self.joined = (-1, -1)
        late = [w for p, w in self.waits if p == phase]
        if late:
            self.waits = [w for w in self.waits if w[0] > phase]
        return late

    def publish(self, agent: Agent, clock: Clock) -> None:
        """Let the current phase know what the agent knows (`clock`), its latest action included."""
        now = (agent.index, agent.version)
        if self.joined != now:
            self.clock = self.join(self.clock, clock + agent.unit)
            self.joined = now


@dataclass(slots=True, eq=False)
class Place:
    """One slot (or multicast slice of it) of a buffer in one CTA, or one accumulator."""

    name: str
    writer: Entry | None = None
    readers: list[Entry] = field(default_factory=list[Entry])
    tag: tuple[int, int] = (-1, -1)
    """(tile, k) of a stage; (tile, k tiles summed) of an accumulator or a part; (tile, chunk) of a store buffer."""
    written_order: int = -1
    """The writing agent's action count, for orders within one agent."""


class Places(dict[tuple[str | int, ...], Place]):
    """Places by buffer, CTA, slot and, where loads are multicast, slice."""

    def __missing__(self, key: tuple[str | int, ...]) -> Place:
        place = self[key] = Place(f"{key[0]}[{key[2]}]")
        return place
