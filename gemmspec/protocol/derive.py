"""Spec -> Protocol: all that can be derived, derived.

Given a resolved `Spec`, return the `Protocol`. Judges nothing: a declared value is what the kernel will use, and
the derived one stands beside it for the rules to compare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gemmspec.model.spec import Spec
from gemmspec.protocol.draft import BarrierDraft, draft
from gemmspec.protocol.elaborate import elaborate
from gemmspec.protocol.plan import Share
from gemmspec.protocol.program import (
    Action,
    Arrive,
    BarrierPlan,
    Branch,
    Buffer,
    Commit,
    Expect,
    Load,
    Loop,
    Program,
    Protocol,
    Slot,
    Space,
    Statement,
    Wait,
)
from gemmspec.protocol.standard import is_exchange
from gemmspec.protocol.tile import Tiling
from gemmspec.record import record
from gemmspec.vocabulary import LoopKind

# Trip counts that stand for "many": ratios of counts are then within rounding of their limits.
MANY_TILES, MANY_K = 64, 64


def derive(spec: Spec) -> Protocol:
    """Return the Protocol of a spec."""
    drafts = {b.name: draft(spec, b) for b in spec.barriers}
    programs = tuple(elaborate(spec, role, drafts) for role in spec.roles)
    programs = tuple(_with_bytes(spec, p, programs) for p in programs)
    reached = spec.cluster.size > 1
    return Protocol(
        spec=spec,
        barriers=tuple(_plan(spec, d, programs) for d in drafts.values()),
        buffers=_buffers(spec),
        programs=programs,
        start_sync="cluster" if reached else "cta",
        end_sync="cluster" if reached else "cta" if spec.target.has_tmem else "none",
    )


@record
class _Use:
    """An action and how often one instance runs it in MANY_TILES tiles of MANY_K k tiles."""

    action: Action
    times: float


def _uses(
    body: tuple[Statement, ...], times: float = 1.0, trips: Mapping[LoopKind, int] | None = None
) -> Iterator[_Use]:
    inside = dict(trips or {})
    for statement in body:
        match statement:
            case Loop(kind, count, offset):
                n = {LoopKind.TILE: MANY_TILES, LoopKind.K: MANY_K}.get(kind, count or 0) + offset
                yield from _uses(statement.body, times * max(n, 0), {**inside, kind: max(n, 1)})
            case Branch(kind, _, equal):
                n = inside.get(kind, 1)
                yield from _uses(statement.body, times * (1 / n if equal else (n - 1) / n), inside)
            case action:
                yield _Use(action, times)


def _runs(spec: Spec, program: Program) -> tuple[int, ...]:
    """Return the ranks in which a role runs."""
    return tuple(r for r in range(spec.cluster.size) if not program.leader_only or r % spec.pair == 0)


def _waits(spec: Spec, name: str, programs: tuple[Program, ...]) -> tuple[float, int | None]:
    """Return how often one slot set of a barrier is waited for by one instance, and in which CTA (None: nowhere)."""
    for program in programs:
        times = sum(u.times for u in _uses(program.body) if isinstance(u.action, Wait) and u.action.barrier == name)
        if times:
            return times, _runs(spec, program)[0]
    return 0.0, None


def _plan(spec: Spec, d: BarrierDraft, programs: tuple[Program, ...]) -> BarrierPlan:
    name = d.barrier.name
    waits, cta = _waits(spec, name, programs)
    shares: list[Share] = []
    for program in programs:
        uses = [u for u in _uses(program.body) if _signals(u.action, name)]
        if not uses:
            continue
        reaching = tuple(r for r in _runs(spec, program) if cta is not None and _reaches(uses[0].action, d, r, cta))
        per_slot = 1 if _slot(uses[0].action).self_stride else program.instances
        arrivals = sum(u.times * _threads(u.action) for u in uses)
        each = max(round(arrivals / waits), 1) if waits else round(arrivals / MANY_TILES)
        shares.append(Share(program.role.name, each, per_slot, len(reaching), uses[0].action.span))
    total = sum(s.total for s in shares)
    return BarrierPlan(
        barrier=d.barrier,
        via=d.via,
        arrivals=d.barrier.arrivals.value if d.barrier.arrivals else max(total, 1),
        derived_arrivals=total,
        shares=tuple(shares),
        phase=d.phase,
        derived_phase=d.derived_phase,
        targets=d.targets,
        derived_targets=d.derived_targets,
        per_k=d.per_k,
        exchange=is_exchange(spec, d.barrier),
    )


def _signals(action: Action, name: str) -> bool:
    return isinstance(action, Arrive | Commit | Expect) and action.barrier == name


def _slot(action: Action) -> Slot:
    assert isinstance(action, Arrive | Commit | Expect)
    return action.slot


def _threads(action: Action) -> int:
    return action.threads if isinstance(action, Arrive) else 1


def _reaches(action: Action, d: BarrierDraft, source: int, cta: int) -> bool:
    if isinstance(action, Expect):
        return source == cta
    # What must be counted is what should reach the waiter: a wrong mask is its own finding, not a wrong count.
    return cta in d.derived_targets.of(source)


def expects_in(draft_or_plan: BarrierDraft | BarrierPlan, cta: int) -> bool:
    """Return whether CTA `cta` counts the bytes of its barrier, and so arrives with the expectation."""
    return cta in draft_or_plan.targets.of(cta)


def _with_bytes(spec: Spec, program: Program, programs: tuple[Program, ...]) -> Program:
    """Fill in the bytes of each Expect: those that the loads of all CTAs land on the barrier in one phase."""

    def total(name: str) -> int:
        landed = sum(
            u.times * u.action.bytes * p.instances
            for p in programs
            for rank in _runs(spec, p)
            for u in _uses(p.body)
            if isinstance(u.action, Load) and u.action.barrier == name
            for written in u.action.writes.of(rank)
            if 0 in u.action.signals.of(written)
        )
        expected = sum(u.times * p.instances for p in programs for u in _uses(p.body) if _signals(u.action, name))
        return round(landed / expected) if expected else 0

    def fill(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(map(fill_one, body))

    def fill_one(statement: Statement) -> Statement:
        match statement:
            case Loop() | Branch():
                return replace(statement, body=fill(statement.body))
            case Expect(bytes=given):
                derived = total(statement.barrier)
                return replace(statement, bytes=given or derived, derived=derived)
            case action:
                return action

    return replace(program, body=fill(program.body))


def _buffers(spec: Spec) -> tuple[Buffer, ...]:
    t = Tiling.of(spec)
    acc = (
        Buffer("acc", Space.TMEM, t.consumers * t.accumulators, t.acc_columns)
        if spec.target.has_tmem
        else Buffer("acc", Space.REGISTERS, t.consumers, t.block_m * t.block_n // 128)
    )
    return (
        Buffer("A", Space.SMEM, t.stages * t.consumers, t.a_bytes),
        Buffer("B", Space.SMEM, t.stages, t.b_bytes),
        acc,
        Buffer("D", Space.SMEM, t.writers * t.buffers, t.d_bytes),
        *((Buffer("R", Space.SMEM, t.consumers * (t.split - 1), t.part_bytes),) if t.split > 1 else ()),
    )
