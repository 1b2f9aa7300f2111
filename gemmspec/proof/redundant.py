"""What may be left out of a sound protocol: barriers and waits that order nothing which is not ordered without them.

Found by trial: a statement is redundant iff the protocol without it is proved, too. What is found may be left out
all at once, since each trial leaves out what was found before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from gemmspec.proof import prove
from gemmspec.proof.fault import Fault, Kind
from gemmspec.protocol import Protocol
from gemmspec.protocol.program import Arrive, BarrierPlan, Branch, Commit, Loop, Program, Statement, Wait
from gemmspec.vocabulary import Via


@dataclass(frozen=True, slots=True)
class Redundant:
    """A barrier, or one wait for it, that may be left out. `because`: the wait that orders as much."""

    plan: BarrierPlan
    wait: tuple[Program, Wait] | None
    because: tuple[Program, Wait] | None


@lru_cache(maxsize=1)
def redundant(protocol: Protocol) -> tuple[Redundant, ...]:
    """Return what may be left out of a protocol without faults: whole barriers first, the latest declared first."""
    out: list[Redundant] = []
    rest = protocol
    for plan in reversed(protocol.barriers):
        signals = _signals(rest, plan)
        if plan.via is Via.TMA or not signals:
            continue
        waits = [wait for _, wait in waits_of(rest, plan.name)]
        fewer = without(rest, lambda s, gone=(*signals, *waits): any(s is g for g in gone))
        if waits and not prove(fewer):
            out.append(Redundant(plan, None, _cover(rest, (*signals, *waits))))
            rest = fewer
    for program, wait in reversed(list(waits_of(rest))):
        fewer = without(rest, lambda s, wait=wait: s is wait)
        if not prove(fewer):
            plan = protocol.barrier(wait.barrier)
            out.append(Redundant(plan, (program, wait), _cover(rest, (wait,))))
            rest = fewer
    return tuple(out)


def waits_of(protocol: Protocol, barrier: str | None = None) -> Iterator[tuple[Program, Wait]]:
    """Yield the waits of a protocol, for one barrier or for all, in order."""
    for program in protocol.programs:
        for s in program.walk():
            if isinstance(s, Wait) and barrier in (None, s.barrier):
                yield program, s


def _signals(protocol: Protocol, plan: BarrierPlan) -> list[Statement]:
    return [s for p in protocol.programs for s in p.walk() if isinstance(s, Arrive | Commit) and s.barrier == plan.name]


def _cover(protocol: Protocol, gone: tuple[Statement, ...]) -> tuple[Program, Wait] | None:
    """Return the wait that does the work of what is redundant: without both more goes wrong than without it alone."""
    roles = {p.role.name for p in protocol.programs if any(s is g for s in p.walk() for g in gone if _waits(g))}
    others = [pair for pair in waits_of(protocol) if not any(pair[1] is g for g in gone)]
    for pair in sorted(others, key=lambda pair: pair[0].role.name not in roles):
        both = (*gone, pair[1])
        alone = prove(without(protocol, lambda s, wait=pair[1]: s is wait))
        if _keys(prove(without(protocol, lambda s, both=both: any(s is g for g in both)))) - _keys(alone):
            return pair
    return None


def _waits(statement: Statement) -> bool:
    return isinstance(statement, Wait)


def _keys(faults: tuple[Fault, ...]) -> set[tuple[Kind, str]]:
    return {(f.kind, f.place.split("[")[0]) for f in faults}


def without(protocol: Protocol, left_out: Callable[[Statement], bool]) -> Protocol:
    """Return the protocol with some statements left out; those that stay are the same objects."""

    def body(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(
            replace(s, body=body(s.body)) if isinstance(s, Loop | Branch) else s for s in statements if not left_out(s)
        )

    return replace(protocol, programs=tuple(replace(p, body=body(p.body)) for p in protocol.programs))
