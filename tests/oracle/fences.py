"""What interleaving cannot show: whether each thread's writes are visible to the proxy or unit that reads them.

A syntactic check of one role's program order, over a few tiles of two k tiles: each pair of operations that PTX orders
only through a fence has that fence, and the sync of the threads involved, between them.
"""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.protocol.program import (
    AccRead,
    AccReadWait,
    Action,
    Arrive,
    Branch,
    Commit,
    Expect,
    FenceSide,
    Load,
    Loop,
    Mma,
    Program,
    Protocol,
    ProxyFence,
    Statement,
    StoreIssue,
    StoreWait,
    StoreWrite,
    TcgenFence,
    Wait,
    WarpgroupSync,
)
from gemmspec.vocabulary import LoopKind

K_TILES = 2


def missing_fences(protocol: Protocol) -> list[str]:
    """Return what is missing, one sentence each, each once."""
    found: dict[str, None] = {}
    by_bytes = {s.barrier for p in protocol.programs for s in p.walk() if isinstance(s, Load | Expect)}
    for program in protocol.programs:
        for sentence in (*_stores(program), *(_tcgen(program, by_bytes) if protocol.spec.target.has_tmem else ())):
            found[f"{program.role.name}: {sentence}"] = None
    return list(found)


def in_order(program: Program) -> Iterator[tuple[Action, int]]:
    """Yield the actions that one instance runs, each with its tile, until all rings of tiles have wrapped."""
    deepest = max((c.depth for c in program.cursors if c.id in _of_tiles(program)), default=1)
    trips = {LoopKind.TILE: deepest + 2, LoopKind.K: K_TILES}

    def walk(body: tuple[Statement, ...], at: dict[LoopKind, tuple[int, int]]) -> Iterator[tuple[Action, int]]:
        for s in body:
            if isinstance(s, Loop):
                n = max(trips.get(s.kind, s.count or 0) + s.offset, 0)
                for i in range(n):
                    yield from walk(s.body, {**at, s.kind: (i, n)})
            elif isinstance(s, Branch):
                i, n = at.get(s.kind, (0, 1))
                if (i == (0 if s.which == "first" else n - 1)) == s.equal:
                    yield from walk(s.body, at)
            else:
                yield s, at.get(LoopKind.TILE, (0, 1))[0]

    return walk(program.body, {})


def _of_tiles(program: Program) -> set[int]:
    """Return the cursors that count tiles."""
    return {c for s in program.walk() if isinstance(s, Loop) and s.kind is LoopKind.TILE for c in s.advances}


def _fresh(program: Program, wait: Wait, tile: int) -> bool:
    """Say whether a wait passes because nothing has completed yet: then there is nobody to be ordered against."""
    depths = {c.id: c.depth for c in program.cursors if c.id in _of_tiles(program)}
    return wait.phase == 1 and tile < depths.get(wait.slot.cursor, 0) if wait.slot.cursor is not None else False


def _stores(program: Program) -> Iterator[str]:
    """PTX ISA, async proxy: generic writes, fence.proxy.async by each writer, a sync of all of them, then the store."""
    fenced = synced = ordered = True
    for action, _ in in_order(program):
        match action:
            case StoreWrite():
                # One thread waits for the store's read; the others hear of it through the sync.
                if not ordered:
                    yield "no warpgroup sync between the wait for the store's read and the next write"
                fenced = synced = False
            case ProxyFence():
                fenced = True
            case WarpgroupSync():
                synced, ordered = fenced, True
            case StoreWait():
                ordered = False
            case StoreIssue() if not synced:
                yield "no proxy fence and warpgroup sync between the writes of the store buffer and the store"
            case _:
                pass


def _tcgen(program: Program, by_bytes: set[str]) -> Iterator[str]:
    """PTX ISA, tcgen05 memory consistency: tcgen05.fence before an arrival, and behind a wait, of another thread."""
    heard = fenced = True
    loose = False
    for action, tile in in_order(program):
        match action:
            case Wait() if action.barrier not in by_bytes and not _fresh(program, action, tile):
                heard = False
            case TcgenFence(side=FenceSide.AFTER):
                heard = True
            case TcgenFence(side=FenceSide.BEFORE):
                fenced = True
            case AccRead():
                fenced, loose = False, True
                if not heard:
                    yield "no tcgen05 fence between a wait and a tcgen05.ld"
            case Mma():
                if not heard:
                    yield "no tcgen05 fence between a wait and an MMA"
            case AccReadWait():
                # The read is complete only here, so a fence ahead of this orders nothing that counts.
                fenced, loose = fenced and not loose, False
            case StoreWrite() if loose:
                yield "no tcgen05.wait::ld before the registers are used"
            case Arrive() if not fenced or loose:
                yield "no tcgen05.wait::ld and fence between a tcgen05.ld and an arrival"
            case Commit():
                pass  # a commit orders the MMAs that it tracks by itself
            case _:
                pass
