"""GS408: a barrier for tensor memory, on a target that has none."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.model.spec import Barrier, Spec
from gemmspec.protocol.standard import is_exchange
from gemmspec.rules.rule import Finding, spec_rule
from gemmspec.vocabulary import RoleKind


@spec_rule("GS408", "barrier-not-on-target", essential=True)
def barrier_not_on_target(spec: Spec) -> Iterator[Finding]:
    """
    ## What it checks
    On a target without tensor memory no barrier stands between mma and epilogue, and none from a role to itself
    without a `split` in the schedule.

    ## Why it matters
    There the accumulator stays in the registers of the warpgroup that computes it, and that warpgroup stores it: there
    is nobody to tell, but for the other CTAs where several share an output tile (`split`). wgmma is waited for by its
    own warpgroup (`retire` in a program).

    ## Limits
    That tcgen05.commit does not exist there is for impossible-arrival (GS119) to say.
    """
    if spec.target.has_tmem:
        return
    for barrier in spec.barriers:
        if _hands_over(spec, barrier) and not is_exchange(spec, barrier):
            name = f"barrier `{barrier.name}`"
            if _within_one(spec, barrier):
                role = barrier.sources[0].value
                yield Finding(
                    barrier.name_span,
                    f"{name} from `{role}` to itself serves the exchange of `split`, and the schedule has no split",
                    helps=("add `split 2` to the schedule, or delete the barrier",),
                )
            else:
                yield Finding(
                    barrier.name_span,
                    f"{name} guards an accumulator in tensor memory, which {spec.target.name} has not",
                    helps=("delete the barrier",),
                )


def _within_one(spec: Spec, barrier: Barrier) -> bool:
    """Say whether a role that multiplies and stores would wait for itself, as it does where tiles are split."""
    roles = {spec.role(name.value).name for name in (*barrier.sources, *barrier.waiters)}
    return spec.cluster.split == 1 and len(roles) == 1


def _hands_over(spec: Spec, barrier: Barrier) -> bool:
    """Say whether a barrier stands between an accumulator's writer and its reader.

    Two roles that each keep their own accumulator may well take turns.
    """
    pairs = [(spec.role(s.value), spec.role(w.value)) for s in barrier.sources for w in barrier.waiters]
    mma, epilogue = RoleKind.MMA, RoleKind.EPILOGUE
    return any(
        ((s.does(mma) and w.does(epilogue)) or (s.does(epilogue) and w.does(mma)))
        and (s == w or not (s.does(mma) and s.does(epilogue) and w.does(mma) and w.does(epilogue)))
        for s, w in pairs
    )
