"""Replay one cluster's programs in time, event by event.

Every role instance of every CTA runs its Program; an action takes the time that `Costs` says, and asynchronous
operations queue at the engines. Given a protocol, its tiles and waves, return the record of it. What the result
means for the chip is `predict`'s business.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from gemmspec.protocol.derive import expects_in
from gemmspec.protocol.program import (
    AccRead,
    AccReadWait,
    Action,
    Add,
    Arrive,
    BlockSync,
    Branch,
    Commit,
    Expect,
    Load,
    Loop,
    Mma,
    Program,
    Protocol,
    ProxyFence,
    Retire,
    Send,
    Slot,
    Statement,
    StoreCommit,
    StoreIssue,
    StoreWait,
    StoreWrite,
    TcgenFence,
    Wait,
    WarpgroupSync,
)
from gemmspec.protocol.tile import Tiling
from gemmspec.timing.costs import Costs
from gemmspec.timing.engines import CtaEngines, Loads, Mbarrier, letter
from gemmspec.timing.memory import Wave
from gemmspec.timing.outcome import Block, Kind, Lane
from gemmspec.vocabulary import LoopKind, Operand

START, END = "first loads", "last stores"
PARKED = -1.0
"""In place of a time to go on: somebody else will say."""


@dataclass(slots=True)
class Record:
    """What happened, in cycles from the start of the roles."""

    end: float = 0.0
    tile_ends: list[float] = field(default_factory=list[float])
    """When the last role was through with each tile."""
    waited: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    """Cycles by role and by what was waited for, all instances together."""
    alive: dict[str, float] = field(default_factory=dict[str, float])
    """Cycles by role until the instances were through, all together."""
    stalls: defaultdict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))
    """Idle cycles of the tensor core (of a cluster's, on average), by what the MMA that ended them waited for last."""
    blocks: list[Block] = field(default_factory=list[Block])
    finished: bool = True
    """False where roles wait for each other for ever."""


class Agent:
    """One role instance in one CTA."""

    __slots__ = (
        "counts", "cta", "depths", "groups", "instance", "lane", "life", "mma_done", "name", "open_stores", "program",
        "reading", "tile", "trips", "what",
    )  # fmt: skip

    def __init__(self, program: Program, cta: int, instance: int) -> None:
        self.program, self.cta, self.instance = program, cta, instance
        self.name = program.role.name
        self.lane = Lane(cta, f"{self.name} {instance}" if program.instances > 1 else self.name)
        self.counts = [0] * len(program.cursors)
        self.depths = [c.depth for c in program.cursors]
        self.trips: dict[LoopKind, tuple[int, int]] = {}
        self.tile = 0
        self.life: Iterator[float] = iter(())
        self.mma_done: deque[float] = deque(maxlen=64)
        self.reading = 0.0
        self.open_stores = 0.0
        self.groups: list[float] = []
        self.what = ""

    def at(self, slot: Slot) -> int:
        """Return the number that a slot has now."""
        fixed = slot.const + slot.self_stride * self.instance
        if slot.cursor is None:
            return fixed
        return fixed + slot.cursor_stride * ((self.counts[slot.cursor] - slot.lag) % self.depths[slot.cursor])

    def parity(self, wait: Wait) -> int:
        """Return the parity that a wait waits for now."""
        cursor = wait.slot.cursor
        wraps = 0 if cursor is None else (self.counts[cursor] - wait.slot.lag) // self.depths[cursor]
        return (wait.phase ^ wraps) & 1


class Replay:
    """One cluster at work on `tiles` tiles of `k_tiles` each; `waves[i]` is what memory is like during tile i."""

    def __init__(
        self, protocol: Protocol, costs: Costs, waves: Sequence[Wave], k_tiles: int, ghz: float, record: bool
    ) -> None:
        spec = protocol.spec
        self.protocol, self.costs, self.waves, self.k_tiles, self.recording = protocol, costs, waves, k_tiles, record
        self.t = costs.timing
        self.tiling = Tiling.of(spec)
        self.now = 0.0
        self.plans = {b.name: b for b in protocol.barriers}
        self.pair = spec.pair
        self.ctas = [CtaEngines() for _ in range(spec.cluster.size)]
        self.loads = Loads(self.t, ghz, spec.target.sm_count, spec.cluster.size, self.ctas)
        self.barriers = {
            (cta, b.name): [Mbarrier(b.arrivals) for _ in range(b.slots)]
            for cta in range(spec.cluster.size)
            for b in protocol.barriers
        }
        self.record = Record(tile_ends=[0.0] * len(waves))
        self.waited: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        self._heap: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._order = 0
        self._through = 0
        self.agents = [
            Agent(program, cta, instance)
            for program in protocol.programs
            for cta in range(spec.cluster.size)
            if not (program.leader_only and cta % spec.pair)
            for instance in range(program.instances)
        ]

    def run(self) -> Record:
        """Replay to the end, and return the record."""
        for agent in self.agents:
            agent.life = self._body(agent, agent.program.body)
            self._at(0.0, self._resume, agent)
        heap = self._heap
        while heap:
            self.now, _, do, argument = heapq.heappop(heap)
            do(argument)
        record = self.record
        record.end = self.now
        last = [max(c.tensor.free for c in self.ctas[i : i + self.pair]) for i in range(0, len(self.ctas), self.pair)]
        record.stalls[END] += record.end - sum(last) / len(last)
        record.finished = self._through == len(self.agents)
        record.waited = {role: dict(by) for role, by in self.waited.items()}
        return record

    # ---- time

    def _at(self, time: float, do: Callable[[Any], None], argument: Any) -> None:
        self._order += 1
        heapq.heappush(self._heap, (time, self._order, do, argument))

    def _resume(self, agent: Agent) -> None:
        heap = self._heap
        for time in agent.life:
            if time < 0:
                return
            if heap and heap[0][0] <= time:
                self._at(time, self._resume, agent)
                return
            self.now = time
        self._through += 1
        self.record.alive[agent.name] = self.record.alive.get(agent.name, 0.0) + self.now

    def _until(self, agent: Agent, time: float, what: str) -> float:
        """Wait for a time that is known already."""
        if time > self.now:
            self.waited[agent.name][what] += time - self.now
            agent.what = what
            self._block(agent.lane, Kind.WAIT, self.now, time, "", f"wait for {what}", agent.tile)
            return time
        return self.now

    def _block(self, lane: Lane, kind: Kind, start: float, end: float, text: str, detail: str, tile: int) -> None:
        if self.recording and end > start:
            self.record.blocks.append(Block(lane, kind, start, end, text, detail, tile))

    # ---- programs

    def _body(self, agent: Agent, body: tuple[Statement, ...]) -> Iterator[float]:
        for statement in body:
            if isinstance(statement, Loop):
                yield from self._loop(agent, statement)
            elif isinstance(statement, Branch):
                i, trips = agent.trips.get(statement.kind, (0, 1))
                if (i == (0 if statement.which == "first" else trips - 1)) is statement.equal:
                    yield from self._body(agent, statement.body)
            else:
                yield self._act(agent, statement)

    def _loop(self, agent: Agent, loop: Loop) -> Iterator[float]:
        outer = agent.trips.get(loop.kind)
        trips = self._trips(loop)
        for i in range(trips):
            agent.trips[loop.kind] = (i, trips)
            if loop.kind is LoopKind.TILE:
                agent.tile = i
                yield self.now + self.t.tile
            yield from self._body(agent, loop.body)
            for cursor in loop.advances:
                agent.counts[cursor] += 1
            if loop.kind is LoopKind.TILE:
                self.record.tile_ends[i] = max(self.record.tile_ends[i], self.now)
        if outer is None:
            agent.trips.pop(loop.kind, None)
        else:
            agent.trips[loop.kind] = outer

    def _trips(self, loop: Loop) -> int:
        match loop.kind:
            case LoopKind.TILE:
                return len(self.waves) + loop.offset
            case LoopKind.K:
                return self.k_tiles + loop.offset
            case LoopKind.CHUNK | LoopKind.FIXED:
                return (loop.count or 0) + loop.offset
            case _:
                assert_never(loop.kind)

    # ---- actions: each returns when the agent goes on

    def _act(self, agent: Agent, action: Action) -> float:
        now, t = self.now, self.t
        match action:
            case Wait():
                return self._wait(agent, action)
            case Load():
                return self._load(agent, action)
            case Mma():
                return self._mma(agent, action)
            case Commit():
                done = max(now, agent.mma_done[-1] if agent.mma_done else now) + t.commit
                self._signal(agent, action.barrier, action.slot, action.targets.of(agent.cta), 1, done)
                return now + t.arrive
            case Arrive():
                targets = action.targets.of(agent.cta)
                self._signal(agent, action.barrier, action.slot, targets, action.threads, now + t.arrive)
                return now + t.arrive
            case Expect():
                if expects_in(self.plans[action.barrier], agent.cta):
                    self.barriers[agent.cta, action.barrier][agent.at(action.slot)].expect(action.bytes)
                return now + t.arrive
            case Retire(pending):
                done = agent.mma_done[-1 - pending] if len(agent.mma_done) > pending else now
                return self._until(agent, done + t.commit, "tensor core")
            case AccRead():
                agent.reading = self.ctas[agent.cta].tmem.take(now, self.costs.read) + t.acc_latency
                return now + t.wait
            case AccReadWait():
                chunk = str(agent.trips.get(LoopKind.CHUNK, (0, 1))[0])
                end = max(agent.reading, now)
                self._block(agent.lane, Kind.READ, now, end, chunk, f"read chunk {chunk}", agent.tile)
                return end
            case StoreWrite():
                chunk = str(agent.trips.get(LoopKind.CHUNK, (0, 1))[0])
                end = now + self.costs.write
                self._block(agent.lane, Kind.WRITE, now, end, chunk, f"convert and write chunk {chunk}", agent.tile)
                return end
            case Send() | Add():
                text = "send" if isinstance(action, Send) else "add"
                end = now + (self.costs.send if isinstance(action, Send) else self.costs.add)
                self._block(agent.lane, Kind.WRITE, now, end, text, f"{text} parts of the sum", agent.tile)
                return end
            case StoreIssue():
                return self._store(agent)
            case StoreCommit():
                agent.groups.append(agent.open_stores)
                return now
            case StoreWait(pending):
                groups = agent.groups[: len(agent.groups) - pending]
                del agent.groups[: len(groups)]
                return self._until(agent, max(groups, default=now), "store buffer")
            case ProxyFence() | TcgenFence():
                return now + t.fence
            case WarpgroupSync() | BlockSync():
                return now + t.sync
            case _:
                assert_never(action)

    def _wait(self, agent: Agent, action: Wait) -> float:
        number = agent.at(action.slot)
        barrier = self.barriers[agent.cta, action.barrier][number]
        parity = agent.parity(action)
        if barrier.passes(parity):
            return self.now + self.t.wait
        since = self.now

        def resume() -> None:
            end = self.now + self.t.wake
            self.waited[agent.name][action.barrier] += end - since
            agent.what = action.barrier
            where = f"{action.barrier}[{number}]"
            self._block(agent.lane, Kind.WAIT, since, end, "", f"wait for {where}", agent.tile)
            self._at(end, self._resume, agent)

        barrier.waiters.append((parity, resume))
        return PARKED

    def _signal(self, agent: Agent, name: str, slot: Slot, targets: Sequence[int], count: int, time: float) -> None:
        number = agent.at(slot)
        for target in targets:
            away = 0.0 if target == agent.cta else self.t.remote
            self._at(time + away, self.barriers[target, name][number].arrive, count)

    def _load(self, agent: Agent, action: Load) -> float:
        issued = self.now + self.t.tma_issue
        stage, number = agent.at(action.slot), agent.at(action.barrier_slot)
        if action.operand is Operand.A:
            stage //= self.tiling.consumers
        landed = self.loads.issue(action, agent.cta, issued, self.waves[agent.tile])
        for target, time in landed.items():
            for signalled in action.signals.of(target):
                away = 0.0 if signalled == target else self.t.remote
                self._at(time + away, self.barriers[signalled, action.barrier][number].land, action.bytes)
        if self.recording:
            what = letter(action.operand, action.first, action.count, self.tiling.consumers)
            kind = Kind.LOAD_A if action.operand is Operand.A else Kind.LOAD_B
            lane = Lane(agent.cta, "loads", stage)
            end = landed.get(agent.cta, max(landed.values()))
            self._block(lane, kind, issued, end, what, f"load of {what} into stage {stage}", agent.tile)
        return issued

    def _mma(self, agent: Agent, action: Mma) -> float:
        server = self.ctas[agent.cta - agent.cta % self.pair].tensor
        issued = self.now + self.costs.mma_issue
        # The first instruction starts while the others are being issued.
        first = self.now + self.costs.mma_issue / 4
        if first > server.free:
            tensor_cores = len(self.ctas) // self.pair
            self.record.stalls[agent.what if server.free else START] += (first - server.free) / tensor_cores
        end = server.take(first, self.costs.mma)
        agent.mma_done.append(end + self.t.mma_latency)
        stage = agent.at(action.b)
        text = f"{stage}" if agent.program.instances == 1 else f"{agent.instance}:{stage}"
        lane = Lane(agent.cta - agent.cta % self.pair, "tensor core")
        detail = f"MMA of {agent.lane.name}, stage {stage}"
        self._block(lane, Kind.MMA, end - self.costs.mma, end, text, detail, agent.tile)
        return issued

    def _store(self, agent: Agent) -> float:
        engines = self.ctas[agent.cta]
        start = max(self.now, engines.egress.free)
        end = engines.egress.take(self.now, self.costs.store)
        agent.open_stores = end + self.t.store_latency
        chunk = str(agent.trips.get(LoopKind.CHUNK, (0, 1))[0])
        self._block(Lane(agent.cta, "stores"), Kind.STORE, start, end, chunk, f"store of chunk {chunk}", agent.tile)
        return self.now + self.t.tma_issue
