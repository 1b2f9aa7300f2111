"""GS408: a barrier for tensor memory, on a target that has none."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.model.spec import Barrier, Given, Spec
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.vocabulary import RoleKind


@spec_rule("GS408", "barrier-not-on-target", essential=True)
def barrier_not_on_target(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    On a target without tensor memory no barrier stands between mma and epilogue.

    ## Why it matters
    There the accumulator stays in the registers of the warpgroup that computes it, and that warpgroup stores it: there
    is nobody to tell. wgmma is waited for by its own warpgroup (`retire` in a program).

    ## Limits
    That tcgen05.commit does not exist there is for impossible-arrival (GS119) to say.
    """
    if spec.target.has_tmem:
        return
    for barrier in spec.barriers:
        if _hands_over(spec, barrier):
            yield Finding(
                barrier.name_span,
                f"barrier `{barrier.name}` guards an accumulator in tensor memory, which {spec.target.name} has not",
                helps=("delete the barrier",),
            )


def _hands_over(spec: Spec, barrier: Barrier) -> bool:
    """Say whether a barrier stands between an accumulator's writer and its reader."""

    def any_does(side: tuple[Given[str], ...], kind: RoleKind) -> bool:
        return any(spec.role(name.value).does(kind) for name in side)

    mma, epilogue = RoleKind.MMA, RoleKind.EPILOGUE
    sources, waiters = barrier.sources, barrier.waiters
    ready = any_does(sources, mma) and any_does(waiters, epilogue)
    return ready or (any_does(sources, epilogue) and any_does(waiters, mma))
