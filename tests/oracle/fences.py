"""What interleaving cannot show: whether each thread's writes are visible to the proxy or unit that reads them.

A syntactic check of one role's program order, over two tiles of two k tiles: each pair of operations that PTX orders
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

TRIPS = {LoopKind.TILE: 2, LoopKind.K: 2}


def missing_fences(protocol: Protocol) -> list[str]:
    """Return what is missing, one sentence each, each once."""
    found: dict[str, None] = {}
    by_bytes = {s.barrier for p in protocol.programs for s in p.walk() if isinstance(s, Load | Expect)}
    for program in protocol.programs:
        for sentence in (*_stores(program), *(_tcgen(program, by_bytes) if protocol.spec.target.has_tmem else ())):
            found[f"{program.role.name}: {sentence}"] = None
    return list(found)


def in_order(body: tuple[Statement, ...], at: dict[LoopKind, tuple[int, int]] | None = None) -> Iterator[Action]:
    """Yield the actions that one instance runs."""
    at = at or {}
    for s in body:
        if isinstance(s, Loop):
            n = max(TRIPS.get(s.kind, s.count or 0) + s.offset, 0)
            for i in range(n):
                yield from in_order(s.body, {**at, s.kind: (i, n)})
        elif isinstance(s, Branch):
            i, n = at.get(s.kind, (0, 1))
            if (i == (0 if s.which == "first" else n - 1)) == s.equal:
                yield from in_order(s.body, at)
        else:
            yield s


def _stores(program: Program) -> Iterator[str]:
    """PTX ISA, async proxy: generic writes, fence.proxy.async by each writer, a sync of all of them, then the store."""
    fenced = synced = ordered = True
    for action in in_order(program.body):
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
    for action in in_order(program.body):
        match action:
            case Wait() if action.barrier not in by_bytes:
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
