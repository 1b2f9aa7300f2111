"""GS119: a barrier is signalled in a way that its source role can't."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gemmspec.diagnostics import Edit, Fix, Label
from gemmspec.model.spec import Role, Spec
from gemmspec.protocol.standard import via_of
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.vocabulary import RoleKind, Via


@spec_rule("GS119", "impossible-arrival", essential=True)
def impossible_arrival(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    That a barrier's `via` is something that its source role can do.

    ## Why it matters
    Bytes are counted by bulk loads, which only a tma role issues. A `tcgen05.commit` tracks the multiplies of the
    thread that issues it, which only an mma role has. Plain arrivals every role can make.

    ## On a GPU
    There is no such kernel: nothing can be generated.

    ## Limits
    Leave `via` out and it follows from what the source does.
    """
    for barrier in spec.barriers:
        if barrier.via is None:
            continue
        for given in barrier.sources:
            role = spec.role(given.value)
            reason = _reason(spec, role, via_of(spec, barrier))
            if reason:
                words = f"via {via_of(spec, replace(barrier, via=None)).value}"
                yield Finding(
                    barrier.via.span,
                    f"`{role.name}` can't arrive on `{barrier.name}` via {barrier.via.value.value}: {reason}",
                    labels=(Label(role.span, f"a {role.kinds[0].value} role"),),
                    helps=(f"write `{words}`, or leave it out",),
                    fix=Fix(f"write `{words}`", (Edit(barrier.via.span, words),), safe=False),
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
