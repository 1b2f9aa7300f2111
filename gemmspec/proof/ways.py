"""Rings that lack a barrier altogether: data goes there and nothing says so, or nothing says that it may come again.

Like `causes`, this says what is missing, and not that it does harm: the execution decides that.
"""

from __future__ import annotations

from gemmspec.model.spec import Barrier, Role, Spec
from gemmspec.protocol import Protocol
from gemmspec.record import record
from gemmspec.source import Span
from gemmspec.vocabulary import RoleKind


@record
class OneWay:
    """A ring in which no chain of barriers leads from one side to the other."""

    forward: bool
    """Whether the barrier that says "full" is missing; else the one that says "empty"."""
    stages: bool
    """The ring holds stages (else accumulators)."""
    source: str
    """The role that fills the ring's slots."""
    reader: str
    given: Barrier | None
    """The barrier of the other direction, if there is one."""
    span: Span
    """`given`'s name; without it, the role that reads."""


def one_ways(protocol: Protocol) -> tuple[OneWay, ...]:
    """Return the rings that lack a barrier: at most one of the stages, and one of the accumulators."""
    spec = protocol.spec
    rings = [(RoleKind.TMA, RoleKind.MMA, True)]
    if spec.target.has_tmem:
        rings.append((RoleKind.MMA, RoleKind.EPILOGUE, False))
    found = (_one_way(protocol, spec.roles_of(up), spec.roles_of(down), stages) for up, down, stages in rings)
    return tuple(way for way in found if way is not None)


def _one_way(protocol: Protocol, sources: tuple[Role, ...], readers: tuple[Role, ...], stages: bool) -> OneWay | None:
    """Find a role of either side from which nothing leads to the other side, or back."""
    barriers = tuple(plan.barrier for plan in protocol.barriers if plan.per_k is stages)
    for forward in (True, False):

        def led(source: Role, reader: Role, forward: bool = forward) -> bool:
            ends = (source.name, reader.name)
            return _leads(barriers, *ends) if forward else _leads(barriers, *reversed(ends))

        deaf = [r for r in readers if not any(r is s or led(s, r) for s in sources)]
        mute = [s for s in sources if not any(r is s or led(s, r) for r in readers)]
        if deaf or mute:
            source, reader = (*mute, *sources)[0].name, (*deaf, *readers)[0].name
            other = (reader, source) if forward else (source, reader)
            given = next((b for b in barriers if _joins(b, *other)), None)
            span = given.name_span if given else protocol.spec.role(reader).name_span
            return OneWay(forward, stages, source, reader, given, span)
    return None


def _joins(barrier: Barrier, source: str, waiter: str) -> bool:
    return any(g.value == source for g in barrier.sources) and any(g.value == waiter for g in barrier.waiters)


def _leads(barriers: tuple[Barrier, ...], start: str, end: str) -> bool:
    """Say whether news of one role reaches another, by way of others where need be."""
    reached, fresh = {start}, True
    while fresh:
        fresh = {w.value for b in barriers if any(s.value in reached for s in b.sources) for w in b.waiters} - reached
        reached |= fresh
    return end in reached


def slots_between(spec: Spec, way: OneWay) -> str:
    """Return the slots that a barrier of this ring has, as a spec writes them."""
    if way.stages:
        return "[stages]"
    factors = [way.source] if spec.role(way.source).instances > 1 else []
    if spec.accumulators.value > 1:
        factors.append("accumulators")
    return f"[{' x '.join(factors) or 1}]"
