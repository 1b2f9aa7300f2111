"""What a CTA does before its roles begin and after they end: barriers, tensor memory, syncs of all threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gemmspec.audit.difference import Difference
from gemmspec.audit.events import FULL, Done, Event, describe, who
from gemmspec.audit.image import Deeds
from gemmspec.protocol.memory import tmem_columns
from gemmspec.protocol.program import Protocol
from gemmspec.source import Span

Warps = Mapping[tuple[int, int], Deeds]
"""What every warp of a CTA does, by warpgroup and warp of it."""

Say = Callable[[str, str, Span | None], None]
"""Called with what is expected, what is found, and where the spec says so."""

_PROLOGUE = {"init", "init fence", "alloc", "relinquish", "tcgen05 fence", "sync", "grid"}


def prologue(protocol: Protocol, rank: int, warps: Warps) -> list[Difference]:
    """Return what differs before the roles of a CTA begin."""
    out: list[Difference] = []
    say = _into(out, f"prologue of CTA {rank}")
    _initialisation(protocol, warps, say)
    if protocol.spec.target.has_tmem:
        _allocation(protocol, warps, say)
    tail = [Event("sync", (protocol.start_sync,))]
    if protocol.spec.target.has_tmem:
        # The syncs have no memory clobber of their own; the fences keep tensor memory's use behind its allocation.
        sides = (Event("tcgen05 fence", (f"{side}_thread_sync",)) for side in ("before", "after"))
        tail = [next(sides), *tail, next(sides)]
    # No role touches global memory before the kernels before this one are done with it. Which kernels are let in
    # early matters to nobody: they wait alike.
    tail += [Event("grid", ("launch_dependents",)), Event("grid", ("wait",))]
    wanted = ", ".join(describe(e) for e in tail)
    for name, deeds in _named(warps):
        last = deeds.prologue[-len(tail) :]
        if last != [(e, FULL) for e in tail]:
            say(f"{wanted}, by a whole warp", f"{name}: {_texts(last)}", None)
        _only(_PROLOGUE, name, deeds.prologue, say)
    return out


def _initialisation(protocol: Protocol, warps: Warps, say: Say) -> None:
    counts: dict[tuple[str, int], list[int]] = {}
    unfenced = False
    for deeds in warps.values():
        for i, (event, lanes) in enumerate(deeds.prologue):
            if event.verb == "init":
                slot, count = event.numbers
                counts.setdefault((event.names[0], slot), []).extend([count] * lanes.bit_count())
                later = deeds.prologue[i:]
                unfenced |= not any(e.verb == "init fence" and doers & lanes == lanes for e, doers in later)
    for plan in protocol.barriers:
        for slot in range(plan.slots):
            found = counts.pop((plan.name, slot), [])
            if found != [plan.arrivals]:
                times = f"{len(found)} times, for {found} arrivals" if found else "not initialised"
                wanted = describe(Event("init", (plan.name,), (slot, plan.arrivals)))
                span = plan.barrier.arrivals.span if plan.barrier.arrivals else plan.barrier.name_span
                say(f"{wanted}, by one thread", times if len(found) != 1 else f"for {found[0]} arrivals", span)
    for name, slot in counts:
        say("no other barrier", f"initialise {name}[{slot}]", None)
    if unfenced:
        say("fence.mbarrier_init behind the initialisation, by its thread", "no such fence", None)


def _allocation(protocol: Protocol, warps: Warps, say: Say) -> None:
    group, columns = protocol.spec.pair, tmem_columns(protocol.spec)
    wanted = [Event("alloc", (), (columns, group)), Event("relinquish", (), (group,))]
    _one_warp(wanted, {name: _of(d.prologue, {"alloc", "relinquish"}) for name, d in _named(warps)}, say)


def end(protocol: Protocol, rank: int, warps: Warps) -> list[Difference]:
    """Return what differs after the roles of a CTA."""
    out: list[Difference] = []
    say = _into(out, f"end of CTA {rank}")
    if protocol.end_sync != "none":
        sync = Event("sync", (protocol.end_sync,))
        for name, deeds in _named(warps):
            if not deeds.end or deeds.end[0] != (sync, FULL):
                say(f"{describe(sync)}, by a whole warp", f"{name}: {_texts(deeds.end[:1])}", None)
    if protocol.spec.target.has_tmem:
        wanted = [Event("dealloc", (), (tmem_columns(protocol.spec), protocol.spec.pair))]
        _one_warp(wanted, {name: _of(d.end[1:], {"dealloc"}) for name, d in _named(warps)}, say)
    for name, deeds in _named(warps):
        _only({"dealloc"}, name, deeds.end[1:], say)
    return out


def _one_warp(wanted: list[Event], done: Mapping[str, list[Done]], say: Say) -> None:
    """Check that exactly one warp, as a whole, does what is wanted."""
    doers = {name: d for name, d in done.items() if d}
    right = [name for name, d in doers.items() if d == [(e, FULL) for e in wanted]]
    if len(right) != 1 or len(doers) != 1:
        texts = [f"{name}: {_texts(d)}" for name, d in doers.items()]
        say(f"{', '.join(map(describe, wanted))}, by one whole warp", "; ".join(texts) or "nothing", None)


def _only(verbs: set[str], name: str, done: list[Done], say: Say) -> None:
    for d in done:
        if d[0].verb not in verbs:
            say("nothing else", f"{name}: {_texts([d])}", None)


def _of(done: list[Done], verbs: set[str]) -> list[Done]:
    return [d for d in done if d[0].verb in verbs]


def _named(warps: Warps) -> list[tuple[str, Deeds]]:
    return [(f"warp {warp} of warpgroup {group}", deeds) for (group, warp), deeds in warps.items()]


def _texts(done: list[Done]) -> str:
    return ", ".join(f"{describe(event)} by {who(lanes)}" for event, lanes in done) or "nothing"


def _into(out: list[Difference], where: str) -> Say:
    def say(expected: str, found: str, span: Span | None) -> None:
        out.append(Difference(where, expected, found, span))

    return say
