"""GS503: the accumulator goes back later than it could."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Edit, Fix, Label, Severity
from gemmspec.proof.agents import Agent, agents_of
from gemmspec.proof.depths import Trips
from gemmspec.protocol import Protocol
from gemmspec.protocol.program import AccRead, Arrive, StoreIssue
from gemmspec.protocol.tile import Tiling
from gemmspec.rules.rule import Finding, protocol_rule
from gemmspec.source import Span
from gemmspec.vocabulary import RoleKind


@protocol_rule("GS503", "late-release", Severity.ADVICE)
def late_release(protocol: Protocol) -> Iterator[Finding]:
    """
    ## What it checks
    That an epilogue gives its accumulator back right after the last read of it, and stores no chunk in between.

    ## Why it matters
    Once its last columns are in registers, tensor memory is free. A release that comes after the store keeps the
    MMA of the next tile waiting while data that is in registers goes to shared memory and out.

    ## Limits
    Counts what is stored between the last read and the release, not the time that it takes. With a second
    accumulator the MMA waits less, or not at all.
    """
    spec = protocol.spec
    tiling = Tiling.of(spec)
    seen: set[str] = set()
    for agent in agents_of(protocol, Trips(1, 1, tiling.chunks)):
        role = agent.program.role
        if role.name in seen or not spec.target.has_tmem or not role.does(RoleKind.EPILOGUE):
            continue
        seen.add(role.name)
        found = _release(protocol, agent)
        if found is None:
            continue
        arrive, chunks = found
        waiter = protocol.barrier(arrive.barrier).barrier.waiters[0]
        fix = None
        if agent.program.standard:
            end = Span(role.span.end, role.span.end)
            edit = Edit(role.release.span, "release after read") if role.release else Edit(end, " release after read")
            fix = Fix("write `release after read`", (edit,), safe=False)
        columns = f"{chunks * tiling.chunk} of {tiling.acc_columns} columns"
        yield Finding(
            role.release.span if role.release else arrive.span if fix is None else role.name_span,
            f"`{role.name}` gives the accumulator back only after the store of its last {columns}",
            "the store reads registers, not the accumulator",
            labels=(Label(waiter.span, f"`{waiter.value}` waits for it with the next tile"),),
            helps=("write `release after read`",) if fix else (f"move `arrive {arrive.barrier}` ahead of the store",),
            fix=fix,
        )


def _release(protocol: Protocol, agent: Agent) -> tuple[Arrive, int] | None:
    """Return the arrival that gives the accumulator back, and how many chunks are stored since its last read."""
    actions = [s.action for s in agent.steps]
    last = max((i for i, a in enumerate(actions) if isinstance(a, AccRead)), default=None)
    if last is None:
        return None
    stored = 0
    for action in actions[last:]:
        stored += isinstance(action, StoreIssue)
        if isinstance(action, Arrive) and stored:
            waiters = protocol.barrier(action.barrier).barrier.waiters
            if any(protocol.spec.role(g.value).does(RoleKind.MMA) for g in waiters):
                return action, stored
    return None
