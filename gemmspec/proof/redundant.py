"""Statements whose removal changes nothing: what they order is ordered already."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from gemmspec.proof import prove
from gemmspec.protocol import Protocol
from gemmspec.protocol.program import Arrive, BarrierPlan, Branch, Commit, Loop, Program, Statement, Wait


@dataclass(frozen=True, slots=True)
class Redundant:
    """A wait that may be left out. `because`: the wait ahead of it that tells the role as much, where there is one."""

    program: Program
    wait: Wait
    because: Wait | None


def redundant_waits(protocol: Protocol) -> tuple[Redundant, ...]:
    """Return the waits of a protocol without faults that may be left out, each one by itself.

    Tried one by one: a wait is redundant iff the protocol without it is proved, too.
    """
    out: list[Redundant] = []
    for program in protocol.programs:
        before: Wait | None = None
        for wait in (s for s in program.walk() if isinstance(s, Wait)):
            if not prove(without(protocol, lambda s, wait=wait: s is wait)):
                out.append(Redundant(program, wait, before))
            before = wait
    return tuple(out)


def redundant_barriers(protocol: Protocol) -> Iterator[BarrierPlan]:
    """Yield the barriers of a protocol without faults that may be left out with all their waits and arrivals."""
    for plan in protocol.barriers:

        def used(s: Statement, name: str = plan.name) -> bool:
            return isinstance(s, Wait | Arrive | Commit) and s.barrier == name

        if any(used(s) for p in protocol.programs for s in p.walk()) and not prove(without(protocol, used)):
            yield plan


def without(protocol: Protocol, left_out: Callable[[Statement], bool]) -> Protocol:
    """Return the protocol with some statements left out."""

    def body(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(
            replace(s, body=body(s.body)) if isinstance(s, Loop | Branch) else s for s in statements if not left_out(s)
        )

    return replace(protocol, programs=tuple(replace(p, body=body(p.body)) for p in protocol.programs))
