"""What is known of a barrier ahead of its programs: how it is signalled, first parity, where arrivals land."""

from __future__ import annotations

from gemmspec.model.spec import Barrier, Given, Spec
from gemmspec.protocol.program import Targets
from gemmspec.protocol.standard import is_exchange, is_room, per_k, via_of
from gemmspec.record import record
from gemmspec.vocabulary import Group, Operand, RoleKind, Via


@record
class BarrierDraft:
    """`phase` and `targets` are what the kernel uses: as declared, else derived."""

    barrier: Barrier
    via: Via
    phase: int
    derived_phase: int
    targets: Targets
    derived_targets: Targets
    per_k: bool


def draft(spec: Spec, barrier: Barrier) -> BarrierDraft:
    """Return the draft of one barrier."""
    via = via_of(spec, barrier)
    phase = first_phase(spec, barrier)
    targets = derived_targets(spec, barrier, via)
    return BarrierDraft(
        barrier=barrier,
        via=via,
        phase=barrier.phase.value if barrier.phase else phase,
        derived_phase=phase,
        targets=_declared_targets(spec, barrier) or targets,
        derived_targets=targets,
        per_k=per_k(spec, barrier),
    )


def first_phase(spec: Spec, barrier: Barrier) -> int:
    """Return the parity that the waiters start with.

    Whoever waits for data (downstream) must block on a fresh barrier: parity 0. Whoever waits for room
    (upstream) must pass at first, since all slots start free: parity 1.
    """
    if is_exchange(spec, barrier):
        return int(is_room(spec, barrier))
    return 0 if _position(spec, barrier.sources) < _position(spec, barrier.waiters) else 1


def _position(spec: Spec, side: tuple[Given[str], ...]) -> tuple[int, int]:
    """Return the place of a side in the flow of data: by kind, then in the order of declaration."""
    flow = (RoleKind.TMA, RoleKind.MMA, RoleKind.EPILOGUE)
    names = [r.name for r in spec.roles]
    return min((flow.index(spec.role(g.value).kinds[0]), names.index(g.value)) for g in side)


def derived_targets(spec: Spec, barrier: Barrier, via: Via) -> Targets:
    """Return where arrivals must land so that every waiter hears of all that it waits for."""
    cluster, pair = spec.cluster, spec.pair
    if via is Via.TMA:
        return Targets.group(Group.LEADER, cluster, pair)
    if is_exchange(spec, barrier):
        return Targets.group(Group.PEERS, cluster, pair)
    if all(spec.role(g.value).does(RoleKind.TMA) for g in barrier.waiters):
        return _writers(spec)
    if all(_leader_only(spec, g.value) for g in barrier.waiters):
        return Targets.group(Group.LEADER, cluster, pair)
    if any(_leader_only(spec, g.value) for g in barrier.sources):
        return Targets.group(Group.PAIR, cluster, pair)
    return Targets.group(Group.OWN, cluster, pair)


def _leader_only(spec: Spec, role: str) -> bool:
    return spec.paired and spec.role(role).does(RoleKind.MMA)


def _writers(spec: Spec) -> Targets:
    """Return, for each reading CTA, the CTAs whose loads land in the shared memory that its MMA reads."""
    cluster, pair = spec.cluster, spec.pair
    shared = {o for r in spec.roles_of(RoleKind.TMA) if r.multicast for o in r.multicast.value}
    rows, columns = (Targets.group(g, cluster, pair).masks for g in (Group.ROW, Group.COLUMN))
    masks: list[int] = []
    for cta in range(cluster.size):
        mask = 0
        for reader in Targets.group(Group.PAIR, cluster, pair).of(cta):
            mask |= 1 << reader
            mask |= rows[reader] if Operand.A in shared else 0
            mask |= columns[reader] if Operand.B in shared else 0
        masks.append(mask)
    return Targets(tuple(masks))


def _declared_targets(spec: Spec, barrier: Barrier) -> Targets | None:
    cluster, pair = spec.cluster, spec.pair
    if barrier.multicast:
        mask = barrier.multicast.value
        if mask.group is not None:
            return Targets.group(mask.group, cluster, pair)
        return Targets((mask.bits or 0,) * cluster.size)
    if barrier.at:
        at = barrier.at.value
        if at.group is not None:
            return Targets.group(at.group, cluster, pair)
        return Targets((1 << (at.cta or 0),) * cluster.size)
    return None
