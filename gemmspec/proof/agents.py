"""The agents of one cluster, and the flat list of steps that each takes for one tile.

Loops over k and chunks are unrolled for given trip counts, so that the machine only walks lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from gemmspec.proof.clocks import Clock, raised
from gemmspec.proof.depths import Trips
from gemmspec.protocol.program import (
    AccRead,
    Action,
    Add,
    Arrive,
    Branch,
    Loop,
    Mma,
    Program,
    Protocol,
    ProxyFence,
    Send,
    Slot,
    Statement,
    StoreCommit,
    StoreIssue,
    StoreWait,
    StoreWrite,
    WarpgroupSync,
)
from gemmspec.vocabulary import LoopKind


@dataclass(slots=True, eq=False)
class Step:
    """One action in one iteration (None: the end of an iteration, where `advances` move on).

    `k`, `chunk`: indices of the enclosing loops, 0 outside. `run`: what the machine does for it; False means blocked.
    """

    action: Action | None
    k: int = 0
    chunk: int = 0
    advances: tuple[int, ...] = ()
    run: Run | None = None


Run = Callable[["Agent", Step, Any], bool | None]
"""What a step does; it is given its own action once more."""


@dataclass(slots=True, eq=False)
class Agent:
    """One role instance in one CTA."""

    index: int
    program: Program
    cta: int
    instance: int
    first: list[Step]
    """Those of the first tile."""
    steps: list[Step]
    """Those of every other tile."""
    tail: list[Step]
    """What follows the loop over tiles."""
    kinds: frozenset[type]
    """The types of statements in the program."""
    tiles: int
    counts: list[int]
    depths: list[int]
    position: int = 0
    tile: int = 0
    clock: Clock = 0
    unit: Clock = 0
    """One more of its own stream, to add to `clock`."""
    epoch: int = 0
    """Its own stream in `clock`: its releases so far."""
    version: int = 0
    """Changes whenever `clock` does."""
    tmem_clock: Clock = 0
    """What is known of tensor memory: `clock` at the last tcgen05.fence::after_thread_sync."""
    wait_stream: int = -1
    """Its waits that all its threads are known to be past."""
    waits: int = 0
    mma_waits: list[int] = field(default_factory=list[int])
    """For each multiply, the waits before it: all warps of a warpgroup take part in a multiply."""
    wide_clock: Clock = 0
    """What is known of receive buffers: `clock` at the last wait of cluster scope."""
    move_stream: int = -1
    """Its sends and additions that all its threads are known to have made."""
    moves: int = 0
    commit_stream: int = -1
    commits: int = 0
    mma_stream: int = -1
    read_stream: int = -1
    mmas: int = 0
    reads: int = 0
    reads_done: int = 0
    groups: int = 0
    groups_done: int = 0
    open_group: bool = False
    order: int = 0
    """Counts this agent's stores, fences and syncs; the fields below hold its value at their last occurrence."""
    last_fence: int = -1
    last_sync: int = -1
    last_store_wait: int = -1
    last_read: int = -1
    held: tuple[int, int] | None = None
    """(tile, chunk) that the registers hold."""
    owner: int = 0
    """The consumer whose accumulator the registers hold."""
    finished: bool = False

    def slot(self, slot: Slot) -> int:
        """Return the number of the slot that is meant now."""
        fixed = slot.const + slot.self_stride * self.instance
        cursor = slot.cursor
        if cursor is None or not slot.cursor_stride:
            return fixed
        return fixed + slot.cursor_stride * ((self.counts[cursor] - slot.lag) % self.depths[cursor])

    def turn(self, slot: Slot) -> tuple[int, int]:
        """Return how many times the slot's cursor has gone round, and the number of the slot that is meant now."""
        fixed = slot.const + slot.self_stride * self.instance
        cursor = slot.cursor
        if cursor is None:
            return 0, fixed
        wraps, position = divmod(self.counts[cursor] - slot.lag, self.depths[cursor])
        return wraps, fixed + slot.cursor_stride * position

    def with_moves(self, clock: Clock) -> Clock:
        """Return a clock that knows of all its sends and additions so far."""
        return raised(clock, self.move_stream, self.moves) if self.move_stream >= 0 else clock

    @property
    def now(self) -> list[Step]:
        """The steps that it is in: of the first tile, of another, or behind the last."""
        if self.tile >= self.tiles:
            return self.tail
        return self.steps if self.tile else self.first

    @property
    def current(self) -> Step:
        """The step that it is at."""
        return self.now[self.position]

    def does(self, kind: type) -> bool:
        """Return whether its program has a statement of a type."""
        return kind in self.kinds


def agents_of(protocol: Protocol, trips: Trips) -> list[Agent]:
    """Return every agent of the cluster."""
    agents: list[Agent] = []
    spec = protocol.spec
    for program in protocol.programs:
        first, steps, tail = _steps(program, trips)
        kinds = frozenset(type(s) for s in program.walk())
        depths = [c.depth for c in program.cursors]
        for cta in range(spec.cluster.size):
            if program.leader_only and cta % spec.pair:
                continue
            for instance in range(program.instances):
                agent = Agent(
                    len(agents),
                    program,
                    cta,
                    instance,
                    first,
                    steps,
                    tail,
                    kinds,
                    trips.tiles,
                    [0] * len(depths),
                    depths,
                )
                agents.append(agent)
    return agents


def give_streams(agents: list[Agent]) -> int:
    """Number the streams of the agents and of their engines; return how many there are."""
    streams = len(agents)
    for agent in agents:
        agent.wait_stream = agent.index
        if agent.program.threads > 1:
            agent.wait_stream = streams
            streams += 1
        if agent.does(Mma):
            agent.mma_stream, agent.commit_stream = streams, streams + 1
            streams += 2
        if agent.does(Send) or agent.does(Add):
            agent.move_stream = streams
            streams += 1
        if agent.does(AccRead):
            agent.read_stream = streams
            streams += 1
    return streams


def _steps(program: Program, trips: Trips) -> tuple[list[Step], list[Step], list[Step]]:
    """Return the steps of the first tile, of every other tile, and of what follows the loop over tiles."""
    tiles: tuple[list[Step], list[Step]] = ([], [])
    tail: list[Step] = []
    # One thread that arrives for its warpgroup relies on the syncs, so there they are no private matter.
    elected = any(isinstance(s, Arrive) and s.threads == 1 < program.threads for s in program.walk())
    trips = replace(trips, stores=trips.stores or elected)
    looped = False
    for statement in program.body:
        if isinstance(statement, Loop) and statement.kind is LoopKind.TILE:
            looped = True
            for number, steps in enumerate(tiles):
                _unroll(statement.body, trips, {LoopKind.TILE: (number, 3)}, steps)
                steps.append(Step(None, advances=statement.advances))
        else:
            # What stands ahead of the loop runs once, with the first tile.
            _unroll((statement,), trips, {}, tail if looped else tiles[0])
    return *tiles, tail


def _unroll(
    body: tuple[Statement, ...], trips: Trips, inside: dict[LoopKind, tuple[int, int]], out: list[Step]
) -> None:
    k, chunk = inside.get(LoopKind.K, (0, 1))[0], inside.get(LoopKind.CHUNK, (0, 1))[0]
    for s in body:
        if isinstance(s, Loop):
            n = _trips(s, trips)
            for i in range(n):
                _unroll(s.body, trips, {**inside, s.kind: (i, n)}, out)
                if s.advances:
                    out.append(Step(None, advances=s.advances))
        elif isinstance(s, Branch):
            i, n = inside.get(s.kind, (0, 1))
            if (i == (0 if s.which == "first" else n - 1)) == s.equal:
                _unroll(s.body, trips, inside, out)
        elif trips.stores or not isinstance(s, _PRIVATE):
            out.append(Step(s, k, chunk))


# What only the instance itself, with its own store buffers and registers, takes part in. (Accumulators in registers
# are written by asynchronous multiplies, so there the stores are more than private.)
_PRIVATE = (StoreWrite, ProxyFence, WarpgroupSync, StoreIssue, StoreCommit, StoreWait)


def _trips(loop: Loop, trips: Trips) -> int:
    count = loop.count or 0
    if loop.kind is LoopKind.K:
        count = trips.k
    elif loop.kind is LoopKind.CHUNK:
        count = min(count, trips.chunks)
    return max(count + loop.offset, 0)
