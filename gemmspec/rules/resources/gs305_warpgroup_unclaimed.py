"""GS305: a warpgroup that is launched and does nothing."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Severity
from gemmspec.model.spec import WARPGROUP_THREADS, Spec
from gemmspec.rules.resources.warps import by_warpgroup, launch_registers, warpgroups
from gemmspec.rules.rule import Finding, spec_rule


@spec_rule("GS305", "warpgroup-unclaimed", Severity.WARNING)
def warpgroup_unclaimed(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    Every warpgroup below the last one that a role stands on has a role.

    ## Why it matters
    The kernel launches all warpgroups up to the last. One without a role exits at once, but its threads count in the
    share of the register file that the compiler gives every thread.

    ## Limits
    Single warps without a role are usual, and are not reported.
    """
    claimed = by_warpgroup(spec)
    last = max(claimed)
    for warpgroup in range(warpgroups(spec)):
        if warpgroup not in claimed:
            role = claimed[last][0]
            yield Finding(
                role.placement.span,
                f"warpgroup {warpgroup} has no role, but its {WARPGROUP_THREADS} threads are launched",
                f"all warpgroups up to {last} are launched",
                notes=(f"each of {warpgroups(spec)} warpgroups gets {launch_registers(spec)} registers a thread",),
            )
