"""GS114: a commit or arrival reaches other CTAs than wait for it."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof.causes import Declared
from gemmspec.proof.judge import Verdict
from gemmspec.protocol.program import Targets
from gemmspec.rules.protocol.blame import blamed, consequence, rewrite
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS114", "multicast-mask-mismatch")
def multicast_mask_mismatch(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    The CTAs that a commit or a release reaches, against those that wait for it. A mask has one bit for each rank of
    the cluster.

    ## Why it matters
    Each CTA waits on its own copy of a barrier. In a pair one CTA issues the MMA, but both producers and both
    epilogues wait: a commit that reaches CTA 0 alone leaves CTA 1 behind. In larger clusters a constant mask
    reaches the wrong pair.

    ## On a GPU
    A hang after the first `stages` k tiles, in the CTA that was left out.

    ## Limits
    A mask that reaches more CTAs than wait is not reported if it harms nothing.
    """
    spec = verdict.protocol.spec
    size = spec.cluster.size
    for m, blame in blamed(verdict, Declared.MULTICAST):
        masks = m.plan.derived_targets.masks
        leaders = {masks[c] for c in range(0, spec.cluster.size, spec.pair)}
        same = len(leaders) == 1
        text = f"multicast {_mask(m.derived, size)}" if same else Targets(masks).words(spec.cluster, spec.pair)
        helps, fix = rewrite(m, text)
        derived = Targets(masks).of(next(c for c in range(len(masks)) if masks[c] == m.derived))
        yield Finding(
            m.span,
            f"barrier `{m.plan.name}` is signalled in {_ctas(m.declared)}, but {_ctas(m.derived)} "
            f"{_wait(m.derived)} for it",
            f"{_mask(m.declared, size)} is not {_mask(m.derived, size)}",
            notes=(
                f"the waiter runs in CTA {' and '.join(map(str, derived))}, each on its own copy of the barrier",
                consequence(verdict, blame),
            ),
            helps=helps,
            fix=fix,
        )


def _ctas(mask: int) -> str:
    ranks = [str(r) for r in range(mask.bit_length()) if mask >> r & 1]
    if not ranks:
        return "no CTA"
    return f"CTA {ranks[0]}" if len(ranks) == 1 else f"CTAs {', '.join(ranks)}"


def _wait(mask: int) -> str:
    return "waits" if mask.bit_count() == 1 else "wait"


def _mask(mask: int, size: int) -> str:
    """Return a mask with a digit for each CTA of the cluster."""
    return f"0b{mask:0{size}b}"
