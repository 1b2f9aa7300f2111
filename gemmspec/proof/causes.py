"""What in a spec can be the cause of a fault: declared values that differ from derived ones, and missing structure.

None of these is wrong by itself: the execution decides whether anything goes wrong, and these say why.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from gemmspec.model.spec import Act, Barrier, For, If, Spec, Step
from gemmspec.proof.agents import agents_of
from gemmspec.proof.depths import Trips
from gemmspec.protocol.program import (
    Arrive,
    BarrierPlan,
    Commit,
    Expect,
    Program,
    Protocol,
    Send,
    Statement,
    Wait,
)
from gemmspec.record import record
from gemmspec.source import Span
from gemmspec.vocabulary import Via


class Declared(Enum):
    """A property of a barrier, or of an `expect`, that a spec may state."""

    ARRIVALS = "arrivals"
    PHASE = "phase"
    MULTICAST = "multicast"
    AT = "at"
    BYTES = "bytes"


@record
class Mismatch:
    """A declared value that differs from the derived one. `span`: the words that declare it."""

    what: Declared
    plan: BarrierPlan
    declared: int
    derived: int
    span: Span


def mismatches(protocol: Protocol) -> tuple[Mismatch, ...]:
    """Return every declared value that differs from what the programs imply."""
    out: list[Mismatch] = []
    for plan in protocol.barriers:
        b = plan.barrier
        if b.arrivals and plan.arrivals != plan.derived_arrivals:
            out.append(Mismatch(Declared.ARRIVALS, plan, plan.arrivals, plan.derived_arrivals, b.arrivals.span))
        if b.phase and plan.phase != plan.derived_phase:
            out.append(Mismatch(Declared.PHASE, plan, plan.phase, plan.derived_phase, b.phase.span))
        if plan.targets != plan.derived_targets:
            given = b.multicast or b.at
            if given:
                what = Declared.MULTICAST if b.multicast else Declared.AT
                cta = next(c for c, m in enumerate(plan.targets.masks) if m != plan.derived_targets.masks[c])
                out.append(Mismatch(what, plan, plan.targets.masks[cta], plan.derived_targets.masks[cta], given.span))
    for program in protocol.programs:
        for s in program.walk():
            if isinstance(s, Expect) and s.written and s.bytes != s.derived:
                out.append(Mismatch(Declared.BYTES, protocol.barrier(s.barrier), s.bytes, s.derived, s.written))
    return tuple(out)


def repair(spec: Spec, wrong: tuple[Mismatch, ...]) -> Spec:
    """Return the spec with these declarations left out, so that they are derived."""

    def barrier(b: Barrier) -> Barrier:
        for m in wrong:
            if m.plan.name == b.name and m.what is not Declared.BYTES:
                b = replace(b, **{m.what.value: None})
        return b

    spans = {m.span for m in wrong if m.what is Declared.BYTES}

    def steps(body: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(map(step, body))

    def step(s: Step) -> Step:
        match s:
            case For() | If():
                return replace(s, body=steps(s.body))
            case Act():
                return replace(s, number=None) if s.verb == "expect" and s.span in spans else s

    programs = tuple(replace(p, body=steps(p.body)) for p in spec.programs)
    return replace(spec, barriers=tuple(map(barrier, spec.barriers)), programs=programs)


class Lack(Enum):
    """What a pipeline can lack, or have in contradiction."""

    ROOM = "room"
    """CTAs send each other parts of sums, and no barrier says that what was sent before has been added."""
    ARRIVAL = "arrival"
    """A barrier is waited for, and nothing arrives on it."""
    WAIT = "wait"
    """A barrier is signalled, and a role that it names as waiter never waits for it."""
    SLOTS = "slots"
    """A barrier has fewer or more slots than the ring that it guards."""
    TRIPS = "trips"
    """Sources and waiters of a barrier run their loops differently often."""


@record
class Gap:
    """A structural cause. `stages`: it concerns the stages (else the accumulators)."""

    what: Lack
    plan: BarrierPlan
    stages: bool
    role: str
    span: Span
    counts: tuple[str, str] = ("", "")
    """For slots and trips: the two numbers or loops that differ (sources', waiters')."""


def gaps(protocol: Protocol) -> tuple[Gap, ...]:
    """Return what the pipeline lacks."""
    out: list[Gap] = []
    for plan in protocol.barriers:
        waiters = [p for p in protocol.programs if _has(p, plan.name, Wait)]
        sources = [p for p in protocol.programs if _has(p, plan.name, Arrive, Commit, Expect)]
        named = {g.value for g in plan.barrier.waiters}
        if waiters and not sources:
            out.append(Gap(Lack.ARRIVAL, plan, plan.per_k, plan.barrier.sources[0].value, plan.barrier.name_span))
        out += [
            Gap(Lack.WAIT, plan, plan.per_k, g.value, plan.barrier.name_span)
            for g in plan.barrier.waiters
            if g.value in named - {p.role.name for p in waiters}
        ]
        if waiters and sources and not any(g.what is Lack.TRIPS and g.stages == plan.per_k for g in out):
            # Both barriers of a ring disagree when one does: the forward one is enough.
            out += _trips(protocol, plan, sources[0], waiters[0])
        ring = plan.slots > 1 or plan.via in (Via.TMA, Via.COMMIT)
        if ring and plan.per_k and plan.slots != protocol.spec.stages.value:
            counts = (str(plan.slots), str(protocol.spec.stages.value))
            out.append(Gap(Lack.SLOTS, plan, True, plan.barrier.waiters[0].value, plan.barrier.slots_span, counts))
    return (*out, *_rooms(protocol))


def _has(program: Program, barrier: str, *kinds: type[Statement]) -> bool:
    return any(isinstance(s, kinds) and getattr(s, "barrier", "") == barrier for s in program.walk())


def _rooms(protocol: Protocol) -> list[Gap]:
    """Find exchanges in which no barrier says that what was sent has been added."""
    out: list[Gap] = []
    for program in protocol.programs:
        name = program.role.name
        own = [p for p in protocol.barriers if p.exchange and any(w.value == name for w in p.barrier.waiters)]
        if own and _sends(program) and all(plan.derived_phase == 0 for plan in own):
            out.append(Gap(Lack.ROOM, own[0], False, name, own[0].barrier.name_span))
    return out


def _sends(program: Program) -> bool:
    return any(isinstance(s, Send) for s in program.walk())


def _trips(protocol: Protocol, plan: BarrierPlan, source: Program, waiter: Program) -> list[Gap]:
    """Compare how often a tile signals and waits, for two numbers of k tiles."""

    def count(program: Program, kinds: tuple[type[Statement], ...], k: int) -> int:
        agent = next(a for a in agents_of(protocol, Trips(k, 1, 64)) if a.program is program)
        return sum(isinstance(s.action, kinds) and getattr(s.action, "barrier", "") == plan.name for s in agent.steps)

    few, many = 16, 32
    signals = [count(source, (Arrive, Commit, Expect), k) for k in (few, many)]
    waits = [count(waiter, (Wait,), k) for k in (few, many)]
    if signals[0] * waits[1] == signals[1] * waits[0]:
        return []
    counts = _in_words(signals, few, many), _in_words(waits, few, many)
    return [Gap(Lack.TRIPS, plan, plan.per_k, waiter.role.name, plan.barrier.name_span, counts)]


def _in_words(counts: list[int], few: int, many: int) -> str:
    """Return a count a tile as a formula in the number of k tiles."""
    slope = (counts[1] - counts[0]) // (many - few)
    rest = counts[0] - slope * few
    head = {0: "", 1: "K"}.get(slope, f"{slope} K")
    if not head:
        return str(rest)
    return head if not rest else f"{head} {'+' if rest > 0 else '-'} {abs(rest)}"
