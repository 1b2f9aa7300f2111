"""GS311: a role of 128 threads on single warps."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Edit, Fix
from gemmspec.model.spec import Spec
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.vocabulary import RoleKind


@spec_rule("GS311", "role-needs-whole-warpgroup", essential=True)
def role_needs_whole_warpgroup(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    An epilogue role, and an mma role on a target without tensor memory, stands on whole warpgroups.

    ## Why it matters
    A warp can read only its own quarter of the lanes of tensor memory (warp i of a warpgroup: lanes 32 i to 32 i + 31),
    so it takes all four to read an accumulator. wgmma is an instruction of four warps.

    ## Limits
    None.
    """
    for role in spec.roles:
        if role.placement.warps is None:
            continue
        if role.does(RoleKind.EPILOGUE):
            what = "an epilogue"
        elif role.does(RoleKind.MMA) and not spec.target.has_tmem:
            what = f"an mma role of {spec.target.name}"
        else:
            continue
        low, high = role.placement.warps
        words = f"on warpgroup {role.placement.warpgroups[0]}"
        yield Finding(
            role.placement.span,
            f"{what} takes the 4 warps of a warpgroup, but role `{role.name}` stands on {high - low + 1}",
            helps=(f"write `{words}`",),
            fix=Fix(f"write `{words}`", (Edit(role.placement.span, words),), safe=False),
        )
