"""The faults of one execution: each kind and pair of places in the spec once."""

from __future__ import annotations

from gemmspec.proof.agents import Agent, Step
from gemmspec.proof.cells import Entry
from gemmspec.proof.fault import At, Fault, Kind
from gemmspec.protocol.program import (
    AccRead,
    Action,
    Add,
    Arrive,
    Commit,
    Expect,
    Load,
    Mma,
    Retire,
    Send,
    StoreIssue,
    StoreWrite,
    Wait,
)

Key = tuple[Kind, object, object, str]

_WORDS: dict[type[Action], str] = {
    Wait: "wait",
    Arrive: "arrive",
    Commit: "commit",
    Expect: "expect",
    Load: "load",
    Mma: "mma",
    AccRead: "read",
    Send: "send",
    Add: "add",
    StoreWrite: "store",
    StoreIssue: "store",
    Retire: "retire",
}


class Faults:
    """Collects faults by kind and places in the spec."""

    def __init__(self) -> None:
        self.found: dict[Key, Fault] = {}

    def add(self, kind: Kind, agent: Agent, step: Step, other: Entry | None, place: str, detail: str) -> None:
        """Note that a step of an agent conflicts with an earlier entry (or with what should be there)."""
        where = at(other.agent, other.step, other.tile) if other else None
        self.put(Fault(kind, at(agent, step, agent.tile), where, place, detail))

    def between(self, kind: Kind, one: Entry, other: Entry, place: str) -> None:
        """Note that two entries conflict."""
        first, second = (at(e.agent, e.step, e.tile) for e in (one, other))
        self.put(Fault(kind, first, second, place))

    def put(self, fault: Fault) -> None:
        """Note a fault, unless one like it is known."""
        other = fault.other.span if fault.other else None
        self.found.setdefault((fault.kind, fault.at.span, other, fault.place.split("[")[0]), fault)


def at(agent: Agent, step: Step, tile: int) -> At:
    """Return a step of an agent in words. Slots are those of now: exact for the step that the agent is at."""
    action = step.action
    assert action is not None
    word = _WORDS.get(type(action), "")
    if isinstance(action, Wait | Arrive | Commit | Expect):
        word = f"{word} {action.barrier}[{agent.slot(action.slot)}]"
    elif isinstance(action, Load):
        word = f"{word} {action.operand.value}"
    return At(agent.program.role.name, agent.instance, agent.cta, tile, step.k, action.span, word)
