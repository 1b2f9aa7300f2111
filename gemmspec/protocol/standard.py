"""The standard program of each kind of role, in the language's own steps.

Given a `Spec` and a role that has no `program` block, return the steps that a user would have written. So a
standard and a custom program take the same way into the Protocol, and `show` can print either.
"""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.model.spec import Act, Barrier, For, Given, If, Ref, Role, SlotFactor, Spec, Step, Term
from gemmspec.protocol.tile import Tiling
from gemmspec.source import Span
from gemmspec.vocabulary import LoopKind, Release, RoleKind, Via


def standard_program(spec: Spec, role: Role) -> tuple[Step, ...]:
    """Return the standard steps of a role: one loop over tiles."""
    body: tuple[Step, ...] = ()
    if role.does(RoleKind.TMA):
        body += _producer(spec, role)
    if role.does(RoleKind.MMA):
        body += _consumer(spec, role)
    if role.does(RoleKind.EPILOGUE):
        body += _epilogue(spec, role)
    return (_loop(LoopKind.TILE, body, role),)


def per_k(spec: Spec, barrier: Barrier) -> bool:
    """Return whether a barrier guards stages (used once a k tile) rather than accumulators (once a tile)."""
    words = {f.text for f in barrier.factors}
    if "stages" in words:
        return True
    if words & {"accumulators", *(r.name for r in spec.roles)} or is_exchange(spec, barrier):
        return False
    return not any(_only_epilogue(spec, side) for side in (barrier.sources, barrier.waiters))


def is_exchange(spec: Spec, barrier: Barrier) -> bool:
    """Return whether a barrier stands between those that multiply and store, in CTAs that share an output tile."""
    roles = [spec.role(name.value) for name in (*barrier.sources, *barrier.waiters)]
    fused = all(r.does(RoleKind.MMA) and r.does(RoleKind.EPILOGUE) for r in roles)
    return spec.cluster.split > 1 and fused and all(f.text != "stages" for f in barrier.factors)


def is_room(spec: Spec, barrier: Barrier) -> bool:
    """Return whether a barrier of an exchange says that receive buffers are free (else that parts have come).

    A program says it by what it waits for ahead of its first `send`. For standard ones the order of the barrier lines
    does: parts first, then room; one that stands alone says it by its phase.
    """
    waiters = [w.value for w in barrier.waiters]
    for program in (p for p in spec.programs if p.role in waiters):
        acts = list(acts_of(program.body))
        waits = [i for i, a in enumerate(acts) if a.verb == "wait" and a.ref and a.ref.barrier == barrier.name]
        sends = [i for i, a in enumerate(acts) if a.verb == "send"]
        if waits and sends:
            return waits[0] < sends[0]
    alike = [b.name for b in spec.barriers if is_exchange(spec, b) and any(w.value in waiters for w in b.waiters)]
    if len(alike) == 1 and barrier.phase:
        return barrier.phase.value == 1
    return alike.index(barrier.name) > 0


def acts_of(steps: tuple[Step, ...]) -> Iterator[Act]:
    """Yield every action of a program, in order."""
    for step in steps:
        if isinstance(step, Act):
            yield step
        else:
            yield from acts_of(step.body)


def via_of(spec: Spec, barrier: Barrier) -> Via:
    """Return how arrivals on a barrier come about: as written, else by what its sources do."""
    if barrier.via:
        return barrier.via.value
    if is_exchange(spec, barrier):
        return Via.THREADS
    kinds = {kind for name in barrier.sources for kind in spec.role(name.value).kinds}
    if RoleKind.TMA in kinds:
        return Via.TMA
    if RoleKind.EPILOGUE in kinds and RoleKind.MMA in kinds:
        return Via.ELECTED
    if RoleKind.MMA in kinds:
        return Via.COMMIT if spec.target.has_tmem else Via.ELECTED
    return Via.THREADS


def _producer(spec: Spec, role: Role) -> tuple[Step, ...]:
    stage: list[Step] = [_act("wait", spec, b, role) for b in _waited(spec, role) if per_k(spec, b)]
    for barrier in _signalled(spec, role):
        if per_k(spec, barrier) and via_of(spec, barrier) is Via.TMA:
            stage += [_act("load", spec, barrier, role), _act("expect", spec, barrier, role)]
    stage += [
        _signal(spec, b, role) for b in _signalled(spec, role) if per_k(spec, b) and via_of(spec, b) is not Via.TMA
    ]
    return (*_tile_waits(spec, role), _loop(LoopKind.K, tuple(stage), role), *_tile_signals(spec, role))


def _consumer(spec: Spec, role: Role) -> tuple[Step, ...]:
    stage: list[Step] = [_act("wait", spec, b, role) for b in _waited(spec, role) if per_k(spec, b)]
    stage.append(Act("mma", role.span))
    releases = [b for b in _signalled(spec, role) if per_k(spec, b)]
    fused = role.does(RoleKind.EPILOGUE)
    head = _tile_waits(spec, role)
    if spec.target.has_tmem:
        stage += [_signal(spec, b, role) for b in releases]
        tail = () if fused else _tile_signals(spec, role)
        return (*head, _loop(LoopKind.K, tuple(stage), role), *tail)
    # One wgmma group stays in flight, so what is released is the stage before.
    late = tuple(_signal(spec, b, role, lag=1) for b in releases)
    stage.append(Act("retire", role.span, number=1))
    if late:
        stage.append(If(LoopKind.K, "first", False, late, role.span, role.span))
    return (*head, _loop(LoopKind.K, tuple(stage), role), Act("retire", role.span, number=0), *late)


def _epilogue(spec: Spec, role: Role) -> tuple[Step, ...]:
    fused = role.does(RoleKind.MMA)
    head: tuple[Step, ...] = () if fused else _tile_waits(spec, role)
    tail = _tile_signals(spec, role)
    if spec.cluster.split > 1:
        head += _exchange(spec, role)
    chunk: list[Step] = [] if fused else [Act("read", role.span)]
    if tail and Tiling.of(spec).release is Release.READ:
        if Tiling.of(spec).chunks == 1:
            chunk += tail
        else:
            chunk.append(If(LoopKind.CHUNK, "last", True, tail, role.span, role.span))
        tail = ()
    chunk.append(Act("store", role.span))
    return (*head, _loop(LoopKind.CHUNK, tuple(chunk), role), *tail)


def _exchange(spec: Spec, role: Role) -> tuple[Step, ...]:
    """Send the peers their shares once they have room, and add theirs to the own."""

    def waits(room: bool) -> tuple[Step, ...]:
        exchanges = (b for b in _waited(spec, role) if is_exchange(spec, b))
        return tuple(_act("wait", spec, b, role) for b in exchanges if is_room(spec, b) is room)

    def signals(room: bool) -> tuple[Step, ...]:
        exchanges = (b for b in _signalled(spec, role) if is_exchange(spec, b))
        return tuple(_signal(spec, b, role) for b in exchanges if is_room(spec, b) is room)

    send, add = Act("send", role.span), Act("add", role.span)
    return (*waits(True), send, *signals(False), *waits(False), add, *signals(True))


def _tile_waits(spec: Spec, role: Role) -> tuple[Step, ...]:
    waited = (b for b in _waited(spec, role) if not is_exchange(spec, b))
    return tuple(_act("wait", spec, b, role) for b in waited if not per_k(spec, b))


def _tile_signals(spec: Spec, role: Role) -> tuple[Step, ...]:
    signalled = (b for b in _signalled(spec, role) if not is_exchange(spec, b))
    return tuple(_signal(spec, b, role) for b in signalled if not per_k(spec, b))


def _signal(spec: Spec, barrier: Barrier, role: Role, lag: int = 0) -> Act:
    verb = "commit" if via_of(spec, barrier) is Via.COMMIT else "arrive"
    return _act(verb, spec, barrier, role, lag)


def _act(verb: str, spec: Spec, barrier: Barrier, role: Role, lag: int = 0) -> Act:
    return Act(verb, barrier.span, ref=Ref(barrier.name, implied_index(barrier, role, spec, lag), barrier.span))


def implied_index(barrier: Barrier, role: Role, spec: Spec, lag: int = 0) -> tuple[Term, ...]:
    """Return the index that a barrier's slots imply for a role."""

    def term(factor: SlotFactor) -> Term:
        if any(r.name == factor.text for r in spec.roles):
            return Term("self", 0, 0, factor.span)
        if factor.value == 1 and factor.text not in ("stages", "accumulators"):
            return Term("const", 0, 0, factor.span)
        return Term("cursor", 0, lag, factor.span)

    return tuple(term(f) for f in barrier.factors)


def _waited(spec: Spec, role: Role) -> tuple[Barrier, ...]:
    return tuple(b for b in spec.barriers if _names(b.waiters, role))


def _signalled(spec: Spec, role: Role) -> tuple[Barrier, ...]:
    return tuple(b for b in spec.barriers if _names(b.sources, role))


def _names(given: tuple[Given[str], ...], role: Role) -> bool:
    return any(g.value == role.name for g in given)


def _only_epilogue(spec: Spec, side: tuple[Given[str], ...]) -> bool:
    return all(spec.role(g.value).kinds == (RoleKind.EPILOGUE,) for g in side)


def _loop(kind: LoopKind, body: tuple[Step, ...], role: Role) -> For:
    head: Span = role.span
    return For(kind, None, 0, body, head, head)
