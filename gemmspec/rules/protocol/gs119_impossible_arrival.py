"""GS119: a barrier is signalled in a way that its source role can't."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.model.spec import Role, Spec
from gemmspec.protocol.standard import via_of
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.vocabulary import RoleKind, Via


@spec_rule("GS119", "impossible-arrival")
def impossible_arrival(spec: Spec) -> Iterator[Finding]:
    """TODO"""
    for barrier in spec.barriers:
        if barrier.via is None:
            continue
        for given in barrier.sources:
            role = spec.role(given.value)
            reason = _reason(spec, role, via_of(spec, barrier))
            if reason:
                yield Finding(
                    barrier.via.span,
                    f"`{role.name}` can't arrive on `{barrier.name}` via {barrier.via.value.value}: {reason}",
                    labels=(Label(role.span, f"a {role.kinds[0].value} role"),),
                )


def _reason(spec: Spec, role: Role, via: Via) -> str | None:
    """Return why a role can't signal that way, or None if it can."""
    match via:
        case Via.TMA:
            return None if role.does(RoleKind.TMA) else "only a tma role loads, and so has bytes to count"
        case Via.COMMIT:
            if not spec.target.has_tmem:
                return f"{spec.target.name} has no tcgen05.commit"
            return None if role.does(RoleKind.MMA) else "only an mma role issues tcgen05.mma, which a commit tracks"
        case Via.THREADS | Via.ELECTED:
            return None
