"""GS409: a property that means nothing on the target."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.model.spec import Spec
from gemmspec.rules.rule import Finding, spec_rule


@spec_rule("GS409", "property-not-on-target", essential=True)
def property_not_on_target(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    On a target without tensor memory a spec has neither `accumulators` above 1 nor `release`. On a target with tensor
    memory no role is of two kinds at once, and CTAs do not share an output tile (`split`).

    ## Why it matters
    Both speak of an accumulator that an mma role hands to an epilogue and gets back. In registers there is one, and it
    never leaves its warpgroup. In tensor memory the MMA is issued by one thread that goes ahead of the epilogue, which
    is what tensor memory is for. CTAs that share a tile send each other registers of the warpgroups that multiply; from
    tensor memory that is not built yet.

    ## Limits
    None.
    """
    name = spec.target.name
    if spec.target.has_tmem:
        if spec.cluster.split > 1 and spec.schedule.split is not None:
            yield Finding(
                spec.schedule.split.span,
                f"{spec.cluster.split} CTAs share each output tile, which is not built for {name}",
                notes=("they send each other accumulators from registers, but here these are in tensor memory",),
                helps=("leave it out",),
            )
        for role in spec.roles:
            if len(role.kinds) > 1:
                first, second = (kind.value for kind in role.kinds)
                yield Finding(
                    role.name_span,
                    f"role `{role.name}` is {first} and {second} at once, but on {name} these are two roles",
                    helps=("write a role for each, tma and mma on one warp, an epilogue on its own warpgroup",),
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
