"""The agents of one cluster, and the flat list of steps that each takes for one tile.

Loops over k and chunks are unrolled for given trip counts, so that the machine only walks lists.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gemmspec.protocol.program import (
    AccRead,
    AccReadWait,
    Action,
    Branch,
    Loop,
    Program,
    Protocol,
    Slot,
    Statement,
    StoreIssue,
    walk,
)
from gemmspec.source import Span
from gemmspec.vocabulary import LoopKind


@dataclass(frozen=True, slots=True)
class Advance:
    """The end of a loop's iteration: these cursors move on."""

    cursors: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Step:
    """One action in one iteration. `k`, `chunk`: indices of the enclosing loops (0 outside)."""

    action: Action
    k: int
    chunk: int


Item = Step | Advance


@dataclass(eq=False)
class Agent:
    """One role instance in one CTA."""

    index: int
    program: Program
    cta: int
    instance: int
    tile_items: list[Item]
    tail: list[Item]
    """What follows the loop over tiles."""
    tiles: int
    counts: list[int] = field(default_factory=list[int])
    position: int = 0
    tile: int = 0
    clock: list[int] = field(default_factory=list[int])
    version: int = 0
    """Changes whenever `clock` does."""
    tmem_clock: list[int] = field(default_factory=list[int])
    """What is known of tensor memory: `clock` at the last tcgen05.fence::after_thread_sync."""
    mma_stream: int = -1
    read_stream: int = -1
    store_stream: int = -1
    mmas: int = 0
    reads: int = 0
    reads_done: int = 0
    groups: int = 0
    open_group: bool = False
    order: int = 0
    """Counts this agent's actions; the fields below hold its value at their last occurrence."""
    last_fence: int = -1
    last_sync: int = -1
    last_store_wait: int = -1
    last_read_order: int = -1
    held: tuple[int, int] | None = None
    """(tile, chunk) that the registers hold."""
    stored: int = 0
    """Chunks stored of the current tile."""
    finished: bool = False

    def slot(self, slot: Slot) -> int:
        """Return the number of the slot that is meant now."""
        if slot.cursor is None:
            return slot.const + slot.self_stride * self.instance
        depth = self.program.cursors[slot.cursor].depth
        turn = (self.counts[slot.cursor] - slot.lag) % depth
        return slot.const + slot.self_stride * self.instance + slot.cursor_stride * turn

    def wraps(self, slot: Slot) -> int:
        """Return how many times the slot's cursor has gone round."""
        if slot.cursor is None:
            return 0
        return (self.counts[slot.cursor] - slot.lag) // self.program.cursors[slot.cursor].depth


def agents_of(protocol: Protocol, k_tiles: int, tiles: int) -> list[Agent]:
    """Return every agent of the cluster, for a k loop of `k_tiles` and a life of `tiles` tiles."""
    agents: list[Agent] = []
    spec = protocol.spec
    for program in protocol.programs:
        tile_items, tail = _items(program, k_tiles)
        for cta in range(spec.cluster.size):
            if program.leader_only and cta % spec.pair:
                continue
            for instance in range(program.instances):
                agents.append(
                    Agent(len(agents), program, cta, instance, tile_items, tail, tiles, [0] * len(program.cursors))
                )
    return agents


def k_counts(protocol: Protocol) -> range:
    """Return the k trip counts that stand for all (docs/proof.md): up to the deepest ring of the k loops and 2 more."""
    return range(1, _depth(protocol, LoopKind.K) + 3)


def tile_count(protocol: Protocol, k_tiles: int) -> int:
    """Return a tile count that takes every ring past two wraps."""
    k_depth, tile_depth = _depth(protocol, LoopKind.K), _depth(protocol, LoopKind.TILE)
    return max(2 * tile_depth + 2, -(-(2 * k_depth + 2) // k_tiles) + 1)


def _depth(protocol: Protocol, kind: LoopKind) -> int:
    """Return the depth of the deepest ring that loops of a kind advance, lags added."""
    depth = 1
    for program in protocol.programs:
        lag = max((slot.lag for s in program.walk() for slot in slots_of(s)), default=0)
        for loop in program.walk():
            if isinstance(loop, Loop) and loop.kind in (kind, LoopKind.FIXED):
                for cursor in loop.advances:
                    depth = max(depth, program.cursors[cursor].depth + lag)
    return depth


def slots_of(statement: Statement) -> tuple[Slot, ...]:
    """Return every slot that a statement names."""
    names = ("slot", "barrier_slot", "a", "b", "acc", "buffer")
    return tuple(s for n in names if isinstance(s := getattr(statement, n, None), Slot))


def _items(program: Program, k_tiles: int) -> tuple[list[Item], list[Item]]:
    tile: list[Item] = []
    tail: list[Item] = []
    for statement in program.body:
        if isinstance(statement, Loop) and statement.kind is LoopKind.TILE:
            _unroll(statement.body, k_tiles, {}, 0, 0, tile)
            tile.append(Advance(statement.advances))
        else:
            _unroll((statement,), k_tiles, {}, 0, 0, tail)
    return tile, tail


def _unroll(
    body: tuple[Statement, ...],
    k_tiles: int,
    inside: dict[LoopKind, tuple[int, int]],
    k: int,
    chunk: int,
    out: list[Item],
) -> None:
    for s in body:
        if isinstance(s, Loop):
            trips = max((k_tiles if s.kind is LoopKind.K else s.count or 0) + s.offset, 0)
            for i in range(trips):
                now = {**inside, s.kind: (i, trips)}
                is_k, is_chunk = s.kind is LoopKind.K, s.kind is LoopKind.CHUNK
                _unroll(s.body, k_tiles, now, i if is_k else k, i if is_chunk else chunk, out)
                if s.advances:
                    out.append(Advance(s.advances))
        elif isinstance(s, Branch):
            i, trips = inside.get(s.kind, (0, 1))
            if (i == (0 if s.which == "first" else trips - 1)) == s.equal:
                _unroll(s.body, k_tiles, inside, k, chunk, out)
        else:
            out.append(Step(s, k, chunk))


def uses_tensor_memory(program: Program) -> bool:
    """Return whether a program reads tensor memory into registers."""
    return any(isinstance(s, AccRead | AccReadWait) for s in walk(program.body))


def stores(program: Program) -> bool:
    """Return whether a program issues bulk stores."""
    return any(isinstance(s, StoreIssue) for s in walk(program.body))


def span_of(item: Item) -> Span | None:
    """Return the span of a step's statement."""
    return item.action.span if isinstance(item, Step) else None
