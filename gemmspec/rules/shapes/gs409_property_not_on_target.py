"""GS409: a property that means nothing on the target."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.model.spec import Spec
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.vocabulary import RoleKind


@spec_rule("GS409", "property-not-on-target", essential=True)
def property_not_on_target(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    On a target without tensor memory a spec has neither `accumulators` above 1 nor `release`. On a target with tensor
    memory no role is `mma` and `epilogue` at once.

    ## Why it matters
    Both speak of an accumulator that an mma role hands to an epilogue and gets back. In registers there is one, and it
    never leaves its warpgroup. In tensor memory the MMA is issued by one thread that goes ahead of the epilogue, which
    is what tensor memory is for.

    ## Limits
    None.
    """
    name = spec.target.name
    if spec.target.has_tmem:
        for role in spec.roles:
            if role.does(RoleKind.MMA) and role.does(RoleKind.EPILOGUE):
                yield Finding(
                    role.name_span,
                    f"role `{role.name}` is mma and epilogue at once, but on {name} these are two roles",
                    helps=("write an mma role on one warp and an epilogue role on its own warpgroup",),
                )
        return
    if spec.accumulators.value > 1:
        yield Finding(
            spec.accumulators.span,
            f"{spec.accumulators.value} accumulators need tensor memory, which {name} has not",
            helps=("leave it out",),
        )
    for role in spec.roles:
        if role.release is not None:
            yield Finding(
                role.release.span,
                f"role `{role.name}` releases an accumulator in tensor memory, which {name} has not",
                helps=("leave it out",),
            )
