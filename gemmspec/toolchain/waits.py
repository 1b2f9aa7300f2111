"""What a debug build's manifest says of its waits, so that the runtime can read what they wrote down.

Given `Waits` and the spec's text, return plain data. A program keeps its loops, branches, waits and arrivals alone:

    body    = ["for", kind, count, offset, cursors that it advances, body]
            | ["if", kind, "first" or "last", equal, body]
            | ["wait", barrier, slot, phase, site]
            | ["arrive", barrier, slot, arrivals, bytes expected, targets]
            | ["land", barrier, slot, bytes, targets]
    slot    = [const, stride of the instance, stride of the cursor, cursor or -1, lag]
    targets = for each rank, the ranks on whose barrier it counts, once for each time
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gemmspec.protocol.derive import expects_in
from gemmspec.protocol.program import (
    Arrive,
    Branch,
    Commit,
    Expect,
    Load,
    Loop,
    Program,
    Protocol,
    Slot,
    Statement,
    Targets,
    Wait,
)
from gemmspec.protocol.tile import Tiling
from gemmspec.runtime.waits import Site
from gemmspec.source import SourceFile
from gemmspec.toolchain.manifest import BoundedWaits, WaitedBarrier, WaitingRole
from gemmspec.toolchain.problem import BuildProblem
from gemmspec.waits import SYMBOL, Waits


def bounded(protocol: Protocol, source: SourceFile, seconds: float) -> Waits:
    """Return how waits are bounded. Raises `BuildProblem` where the kernel could hang elsewhere all the same."""
    waits = Waits(protocol, seconds)
    found = waits.unbounded()
    if found is not None:
        what, span = found
        line, column = source.position(span.start)
        raise BuildProblem(
            f"{what} ({source.name}:{line}:{column}) is no wait on a barrier, so debug waits cannot bound it: "
            "the kernel could hang there for good; take it out"
        )
    return waits


def table(waits: Waits, source: SourceFile) -> BoundedWaits:
    """Return what the records mean."""
    protocol, tiling = waits.protocol, Tiling.of(waits.protocol.spec)
    size = protocol.spec.cluster.size
    return BoundedWaits(
        seconds=waits.seconds,
        records=SYMBOL,
        rows=waits.rows,
        spec=source.name,
        cluster=size,
        clusters=tiling.ctas // size,
        tile=(tiling.tile_m, tiling.tile_n, tiling.block_k * tiling.split),
        barriers=tuple(
            WaitedBarrier(name=b.name, arrivals=b.arrivals, sources=tuple(str(g.value) for g in b.barrier.sources))
            for b in protocol.barriers
        ),
        roles=tuple(_role(waits, program) for program in protocol.programs),
        sites=tuple(_site(source, program, wait) for program, wait in waits.sites),
    )


def _role(waits: Waits, program: Program) -> WaitingRole:
    spec = waits.protocol.spec
    return WaitingRole(
        name=program.role.name,
        row=waits.base(program),
        instances=program.instances,
        ctas=tuple(range(0, spec.cluster.size, spec.pair if program.leader_only else 1)),
        depths=tuple(c.depth for c in program.cursors),
        body=json.dumps(list(_body(waits, program.body)), separators=(",", ":")),
    )


def _site(source: SourceFile, program: Program, wait: Wait) -> Site:
    line, column = source.position(wait.span.start)
    text = source.line(line)
    return Site(
        role=program.role.name,
        barrier=wait.barrier,
        line=line,
        column=column,
        length=max(min(wait.span.end - wait.span.start, len(text) - column + 1), 1),
        text=text,
    )


def _body(waits: Waits, body: tuple[Statement, ...]) -> Iterator[list[Any]]:
    protocol = waits.protocol
    ranks = range(protocol.spec.cluster.size)
    for s in body:
        match s:
            case Loop():
                inner = list(_body(waits, s.body))
                if inner or s.advances:
                    yield ["for", s.kind.value, s.count, s.offset, list(s.advances), inner]
            case Branch():
                yield ["if", s.kind.value, s.which, s.equal, list(_body(waits, s.body))]
            case Wait():
                yield ["wait", s.barrier, _slot(s.slot), s.phase, waits.site(s)]
            case Arrive():
                yield ["arrive", s.barrier, _slot(s.slot), s.threads, 0, _ranks(s.targets)]
            case Commit():
                yield ["arrive", s.barrier, _slot(s.slot), 1, 0, _ranks(s.targets)]
            case Expect():
                plan = protocol.barrier(s.barrier)
                own = [[r] if expects_in(plan, r) else [] for r in ranks]
                yield ["arrive", s.barrier, _slot(s.slot), 1, s.bytes, own]
            case Load():
                signalled = [[to for cta in s.writes.of(r) for to in s.signals.of(cta)] for r in ranks]
                yield ["land", s.barrier, _slot(s.barrier_slot), s.bytes, signalled]
            case _:
                pass


def _slot(slot: Slot) -> list[int]:
    cursor = -1 if slot.cursor is None else slot.cursor
    return [slot.const, slot.self_stride, slot.cursor_stride, cursor, slot.lag]


def _ranks(targets: Targets) -> list[list[int]]:
    return [list(targets.of(rank)) for rank in range(len(targets.masks))]
