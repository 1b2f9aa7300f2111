"""Say who waits for what when nothing can happen any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gemmspec.protocol.program import (
    AccReadWait,
    BlockSync,
    Protocol,
    Retire,
    StoreWait,
    Wait,
    WarpgroupSync,
)
from gemmspec.simulate.outcome import Fault, Waiting
from gemmspec.simulate.warp import Warp


def hang(protocol: Protocol, warps: Sequence[Warp], cluster: int) -> Fault:
    """Return the fault of warps none of which can go on."""
    waits: list[Waiting] = []
    for warp in warps:
        if warp.program is None or warp.finished or warp.blocked == "end":
            continue
        new = _waiting(warp)
        if waits and _same(waits[-1], new):
            place = waits[-1].place
            waits[-1] = replace(waits[-1], place=replace(place, warps=place.warps + new.place.warps))
        else:
            waits.append(new)
    stuck = {w.place.role for w in waits}
    names = [program.role.name for program in protocol.programs]
    needs = {
        w.place.role: [g.value for g in protocol.barrier(w.barrier).barrier.sources if g.value in stuck]
        for w in waits
        if w.barrier
    }
    return Fault(
        kind="hang",
        message="no role can go on",
        cluster=cluster,
        waits=tuple(waits),
        finished=tuple(n for n in names if n not in stuck),
        cycle=_cycle(needs),
    )


def _waiting(warp: Warp) -> Waiting:
    statement = warp.blocked
    match statement:
        case Wait():
            slot, parity = warp.at(statement.slot), warp.parity(statement)
            barrier = warp.cta.barriers[statement.barrier][slot]
            return Waiting(
                warp.place(statement.span), f"`{statement.barrier}[{slot}]` parity {parity}",
                statement.barrier, slot, parity, barrier.phase, barrier.pending, barrier.tx,
            )  # fmt: skip
        case Retire(pending, span):
            return Waiting(warp.place(span), f"all but {pending} of its MMAs")
        case AccReadWait(span):
            return Waiting(warp.place(span), "its reads of the accumulator")
        case StoreWait(pending, span):
            return Waiting(warp.place(span), f"all but {pending} of its groups of stores")
        case WarpgroupSync(number, span):
            return Waiting(warp.place(span), f"the other warps at named barrier {number + warp.instance}")
        case BlockSync(scope, span):
            return Waiting(warp.place(span), f"all warps of the {scope}")
        case _:
            return Waiting(warp.place(None), f"all warps at the {statement or 'next step'}")


def _same(a: Waiting, b: Waiting) -> bool:
    """Return whether two waits differ in the warp only."""
    return replace(a, place=replace(a.place, warps=())) == replace(b, place=replace(b.place, warps=()))


def _cycle(needs: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the shortest ring of roles in which each waits for the next."""
    best: tuple[str, ...] = ()
    for start in needs:
        paths: list[tuple[str, ...]] = [(start,)]
        seen = {start}
        while paths:
            path = paths.pop(0)
            if start in needs.get(path[-1], ()):
                best = path if not best or len(path) < len(best) else best
                break
            for role in needs.get(path[-1], ()):
                if role not in seen:
                    seen.add(role)
                    paths.append((*path, role))
    return best
