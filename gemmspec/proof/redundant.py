"""What may be left out of a sound protocol: barriers and waits that order nothing which is not ordered without them.

Found by trial: a statement is redundant iff the protocol without it is proved, too. What is found may be left out
all at once, since each trial leaves out what was found before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

from gemmspec.proof import prove
from gemmspec.proof.fault import Fault, Kind
from gemmspec.protocol import Protocol
from gemmspec.protocol.program import Arrive, BarrierPlan, Branch, Commit, Loop, Program, Statement, Wait
from gemmspec.record import record
from gemmspec.vocabulary import Via


@record
class Redundant:
    """A barrier, or one wait for it, that may be left out. `because`: the wait that orders as much."""

    plan: BarrierPlan
    wait: tuple[Program, Wait] | None
    because: tuple[Program, Wait] | None


@lru_cache(maxsize=1)
def redundant(protocol: Protocol) -> tuple[Redundant, ...]:
    """Return what may be left out of a protocol without faults: whole barriers first, the latest declared first."""
    found: list[tuple[BarrierPlan, tuple[Program, Wait] | None, tuple[Statement, ...]]] = []
    rest = protocol
    for plan in reversed(protocol.barriers):
        signals, waits = _signals(rest, plan), [wait for _, wait in waits_of(rest, plan.name)]
        gone = (*signals, *waits)
        if plan.via is not Via.TMA and signals and waits and not prove(_less(rest, gone)):
            found.append((plan, None, gone))
            rest = _less(rest, gone)
    for program, wait in reversed(list(waits_of(rest))):
        if not prove(_less(rest, (wait,))):
            found.append((protocol.barrier(wait.barrier), (program, wait), (wait,)))
            rest = _less(rest, (wait,))
    out: list[Redundant] = []
    for plan, wait, gone in found:
        others = tuple(s for _, _, statements in found for s in statements if not any(s is g for g in gone))
        out.append(Redundant(plan, wait, _cover(rest, _less(protocol, others), gone)))
    return tuple(out)


def waits_of(protocol: Protocol, barrier: str | None = None) -> Iterator[tuple[Program, Wait]]:
    """Yield the waits of a protocol, for one barrier or for all, in order."""
    for program in protocol.programs:
        for s in program.walk():
            if isinstance(s, Wait) and barrier in (None, s.barrier):
                yield program, s


def _signals(protocol: Protocol, plan: BarrierPlan) -> list[Statement]:
    return [s for p in protocol.programs for s in p.walk() if isinstance(s, Arrive | Commit) and s.barrier == plan.name]


def _cover(rest: Protocol, more: Protocol, gone: tuple[Statement, ...]) -> tuple[Program, Wait] | None:
    """Return the wait of `rest` that does the work of what is redundant: without it more goes wrong than in `more`,
    which has what is redundant."""
    roles = {p.role.name for p, wait in waits_of(more) if any(wait is g for g in gone)}
    for program, wait in sorted(waits_of(rest), key=lambda pair: pair[0].role.name not in roles):
        if _keys(prove(_less(rest, (wait,)))) - _keys(prove(_less(more, (wait,)))):
            return program, wait
    return None


def _less(protocol: Protocol, gone: tuple[Statement, ...]) -> Protocol:
    return without(protocol, lambda s: any(s is g for g in gone))


def _keys(faults: tuple[Fault, ...]) -> set[tuple[Kind, str]]:
    return {(f.kind, f.place.split("[")[0]) for f in faults}


def without(protocol: Protocol, left_out: Callable[[Statement], bool]) -> Protocol:
    """Return the protocol with some statements left out; those that stay are the same objects."""

    def body(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(
            replace(s, body=body(s.body)) if isinstance(s, Loop | Branch) else s for s in statements if not left_out(s)
        )

    return replace(protocol, programs=tuple(replace(p, body=body(p.body)) for p in protocol.programs))
