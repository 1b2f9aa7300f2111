"""GS410: B is multicast among CTAs that need different rows of it."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.model.spec import Spec
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.vocabulary import Operand, RoleKind


@spec_rule("GS410", "multicast-across-pair", essential=True)
def multicast_across_pair(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    That B is not multicast where CTAs run their MMA in pairs.

    ## Why it matters
    In a pair (cta_group::2) each CTA holds half of the columns of the MMA, so the two load different rows of B.
    Multicast would put the same rows into both. The pair already shares: each half is loaded once and read by both.

    ## Limits
    In clusters of several pairs along M, CTAs of one rank in their pairs could share B; the language can't say so.
    """
    if not spec.paired:
        return
    for role in spec.roles_of(RoleKind.TMA):
        if role.multicast and Operand.B in role.multicast.value:
            yield Finding(
                role.multicast.span,
                f"`{role.name}` multicasts B, but the 2 CTAs of a pair need different rows of it",
                "each CTA loads its own half, and the MMA reads both",
                helps=("leave B out",),
            )
