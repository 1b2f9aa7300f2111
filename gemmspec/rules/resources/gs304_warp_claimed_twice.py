"""GS304: two roles on one warp."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from gemmspec.diagnostics import Label
from gemmspec.model.spec import Spec
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.rules.units import count


@spec_rule("GS304", "warp-claimed-twice")
def warp_claimed_twice(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    No warp belongs to two roles. A role that names no warps claims all four of each of its warpgroups.

    ## Why it matters
    A warp runs one program. A warp that two roles claim would run one after the other: the first loops until the last
    tile, waiting for the second to begin.

    ## Limits
    One thread that should do two jobs is written as one role of two kinds, or as one role with a `program`.
    """
    for first, second in combinations(spec.roles, 2):
        both = sorted(set(first.placement.claimed) & set(second.placement.claimed))
        if both:
            warpgroup, warp = both[0]
            more = f" and {count(len(both) - 1, 'other')}" if len(both) > 1 else ""
            yield Finding(
                second.placement.span,
                f"role `{second.name}` claims warp {warp} of warpgroup {warpgroup}{more}, "
                f"which role `{first.name}` has",
                labels=(Label(first.placement.span, f"claimed by `{first.name}` here"),),
            )
