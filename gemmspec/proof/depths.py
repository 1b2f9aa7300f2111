"""How often the loops run, so that what is right then is right for every number of k tiles, tiles and chunks.

docs/proof.md, section 5, has the argument.
"""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.protocol.program import (
    Arrive,
    Branch,
    Commit,
    Expect,
    Loop,
    Program,
    Protocol,
    Slot,
    Statement,
    StoreWrite,
    Wait,
    walk,
)
from gemmspec.record import record
from gemmspec.vocabulary import LoopKind

ALL_CHUNKS = 1 << 16


@record
class Trips:
    """How often the loops run: of k and of tiles as chosen, of chunks as many as tell all."""

    k: int
    tiles: int
    chunks: int
    stores: bool = True
    """Whether to run the store sequences, too. They are private to their instance and the same for every k."""


@record
class Depths:
    """The deepest ring of each kind of loop, and the trip counts that therefore stand for all."""

    k: int
    tile: int
    chunk: int
    tmem: bool
    k_ends: int
    """How many iterations at the two ends of a k loop can differ from those between."""
    chunk_ends: int
    back: int
    """How far back the waits of all agents reach together, where a k loop may begin behind the end of one; or 0."""
    whole: bool
    """Whether chunk loops are run in full: others may be meant to keep step with them."""
    k_stores: bool
    """Whether store sequences depend on k, so that they are run for every number of k tiles."""
    first_differs: bool
    """Whether the first tile can leave behind what others do not."""

    @staticmethod
    def of(protocol: Protocol) -> Depths:
        """Return the depths of a protocol."""
        k, tile, chunk = (_depth(protocol, kind) for kind in (LoopKind.K, LoopKind.TILE, LoopKind.CHUNK))
        k_ends, chunk_ends = (_ends(protocol, kind) for kind in (LoopKind.K, LoopKind.CHUNK))
        programs = protocol.programs
        back = _back(protocol) if any(_begins_behind_an_end(p, protocol) for p in programs) else 0
        whole = any(_chunks_in_step(p) for p in programs)
        k_stores = any(
            isinstance(s, StoreWrite) for p in programs for loop in _loops(p, LoopKind.K) for s in walk(loop.body)
        )
        return Depths(
            k,
            tile,
            chunk,
            protocol.spec.target.has_tmem,
            k_ends,
            chunk_ends,
            back,
            whole,
            k_stores,
            any(_first_differs(p) for p in programs),
        )

    @property
    def k_counts(self) -> range:
        """The k trip counts that stand for all: until iterations like any other are as far apart as a ring is deep."""
        return range(1, self.k + self.k_ends + 2)

    @property
    def long_k(self) -> int:
        """The k trip count that shows a hang for which a loop has to be longer than several rings; 0 if none does."""
        long = self.back + self.k_ends + 2
        return long if self.back and long > self.k_counts[-1] else 0

    def trips(self, k_tiles: int, stores: bool = True) -> Trips:
        """Return counts that take every ring past two wraps, for a k loop of `k_tiles`."""
        tiles = max(2 * self.tile + 2, -(-(2 * self.k + 2) // k_tiles) + 1)
        chunks = ALL_CHUNKS if self.whole else self.chunk + self.chunk_ends + 1
        return Trips(k_tiles, tiles, chunks, stores or self.k_stores or not self.tmem)


def _depth(protocol: Protocol, kind: LoopKind) -> int:
    """Return the depth of the deepest ring that loops of a kind advance, with every role's greatest lag added."""
    depth, lags = 1, 0
    for program in protocol.programs:
        lags += max((slot.lag for s in program.walk() for slot in slots_of(s)), default=0)
        for loop in program.walk():
            if isinstance(loop, Loop) and loop.kind in (kind, LoopKind.FIXED):
                depth = max(depth, *(program.cursors[cursor].depth for cursor in loop.advances), 1)
    return depth + (lags if kind is LoopKind.K else 0)


def _ends(protocol: Protocol, kind: LoopKind) -> int:
    """Return how many iterations at the two ends of loops of a kind can differ from those between.

    Those that a branch singles out, and, where a program has a trip more or less, as many at either end.
    """
    branches = {s.which for p in protocol.programs for s in p.walk() if isinstance(s, Branch) and s.kind is kind}
    offsets = (sum(abs(loop.offset) for loop in _loops(p, kind)) for p in protocol.programs)
    return len(branches) + 2 * max(offsets, default=0)


def _loops(program: Program, kind: LoopKind) -> Iterator[Loop]:
    return (s for s in program.walk() if isinstance(s, Loop) and s.kind is kind)


def _begins_behind_an_end(program: Program, protocol: Protocol) -> bool:
    """Return whether a k loop of the program may begin only when one, its own or another's, has ended in the same tile.

    A wait that does not count k tiles, for what is done in this very tile, may be for what is done behind a loop.
    """
    repeated = (s for s in program.walk() if isinstance(s, Loop) and s.kind in (LoopKind.FIXED, LoopKind.CHUNK))
    if any(isinstance(s, Loop) and s.kind is LoopKind.K for loop in repeated for s in walk(loop.body)):
        return True
    loops = list(_loops(program, LoopKind.K))
    if len(loops) != 1:
        return len(loops) > 1
    inside = set(map(id, walk(loops[0].body)))
    shifted = _shifted(protocol)
    ahead = True
    for s in program.walk():
        ahead &= s is not loops[0]
        if not isinstance(s, Wait) or (s.phase and s.barrier not in shifted):
            continue
        counts_k = id(s) in inside and s.slot.cursor in loops[0].advances
        if not counts_k and (ahead or id(s) in inside):
            return True
    return False


def _shifted(protocol: Protocol) -> set[str]:
    """Return the barriers some of whose arrivals may be for another tile than the one that they are made in."""
    arrivals = [s for p in protocol.programs for s in p.walk() if isinstance(s, _ARRIVALS)]
    branches = [s for p in protocol.programs for s in p.walk() if isinstance(s, Branch) and s.kind is LoopKind.TILE]
    inside = [s for branch in branches for s in walk(branch.body) if isinstance(s, _ARRIVALS)]
    return {s.barrier for s in arrivals if s.slot.lag} | {s.barrier for s in inside}


def _first_differs(program: Program) -> bool:
    """Return whether a program tells the first tile apart, or waits for what was done in earlier tiles."""
    turned = {cursor for loop in _loops(program, LoopKind.TILE) for cursor in loop.advances}
    return any(
        (isinstance(s, Branch) and s.kind is LoopKind.TILE)
        or (isinstance(s, Wait) and s.slot.lag > 0 and s.slot.cursor in turned)
        for s in program.walk()
    )


def _back(protocol: Protocol) -> int:
    """Return how many iterations the waits of all agents reach back together, each by the one that reaches farthest."""
    total = 0
    for program in protocol.programs:
        agents = program.instances * protocol.spec.cluster.size
        reaches = [
            program.cursors[s.slot.cursor].depth + s.slot.lag
            for s in program.walk()
            if isinstance(s, Wait) and s.slot.cursor is not None
        ]
        total += agents * max(reaches, default=0)
    return total


def _chunks_in_step(program: Program) -> bool:
    """Return whether a chunk loop is to keep step: with one of fixed length, another, or the arrivals on a barrier."""
    chunks = list(_loops(program, LoopKind.CHUNK))
    return len(chunks) > 1 or any(_loops(program, LoopKind.FIXED)) or any(map(_signals_each_time, chunks))


def _signals_each_time(loop: Loop | Branch) -> bool:
    """Return whether a chunk loop waits or arrives in more than its first or last trip."""
    for s in loop.body:
        if isinstance(s, (Wait, *_ARRIVALS)):
            return True
        once = isinstance(s, Branch) and s.kind is LoopKind.CHUNK and s.equal
        if isinstance(s, Loop | Branch) and not once and _signals_each_time(s):
            return True
    return False


_ARRIVALS = (Arrive, Commit, Expect)


def slots_of(statement: Statement) -> tuple[Slot, ...]:
    """Return every slot that a statement names."""
    names = ("slot", "barrier_slot", "a", "b", "acc", "buffer")
    return tuple(s for n in names if isinstance(s := getattr(statement, n, None), Slot))
