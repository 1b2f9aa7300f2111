"""GS309: more epilogue warpgroups than named barriers are left for."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.model.spec import Spec
from gemmspec.protocol.elaborate import FIRST_NAMED_BARRIER
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.rules.units import count
from gemmspec.vocabulary import RoleKind


@spec_rule("GS309", "named-barriers-exhausted")
def named_barriers_exhausted(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    Each epilogue instance gets a named barrier (`bar.sync`) of its own, and there are enough of them.

    ## Why it matters
    Two warpgroups on one named barrier wait for each other's threads: both hang, or both pass too early.

    ## Limits
    The ids below the first one that gemmspec hands out are left to `__syncthreads` and to libraries.
    """
    roles = spec.roles_of(RoleKind.EPILOGUE)
    need = sum(role.instances for role in roles)
    have = spec.target.named_barriers - FIRST_NAMED_BARRIER
    if need <= have:
        return
    *others, last = roles
    yield Finding(
        last.placement.span,
        f"{count(need, 'epilogue instance')} need a named barrier each, but {have} are left",
        labels=tuple(Label(role.placement.span, count(role.instances, "more instance")) for role in others),
        notes=(f"a CTA has {spec.target.named_barriers}; ids 0..{FIRST_NAMED_BARRIER - 1} are kept for libraries",),
    )
