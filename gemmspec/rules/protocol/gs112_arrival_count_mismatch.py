"""GS112: a barrier is declared with another number of arrivals than complete its phase."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof.causes import Declared
from gemmspec.proof.judge import Verdict
from gemmspec.rules.protocol.blame import blamed, consequence, rewrite, share_label
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS112", "arrival-count-mismatch")
def arrival_count_mismatch(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    The declared `arrivals` of a barrier against those that the programs make in one phase: one for an elected
    thread or a commit, 128 for all threads of a warpgroup, times the instances and the CTAs that reach the same
    barrier.

    ## Why it matters
    With too few the barrier opens before the last of them is done. With too many it never opens. The number is easy
    to get wrong in a cluster, where a barrier of CTA 0 hears from both CTAs.

    ## On a GPU
    Too many: a hang on the first use. Too few: wrong tiles, now and then, more often under load.

    ## Limits
    Reported where the count leads to a fault; leave it out and it is derived.
    """
    for m, blame in blamed(verdict, Declared.ARRIVALS):
        early = m.declared < m.derived
        helps, fix = rewrite(m, f"arrivals {m.derived}")
        yield Finding(
            m.span,
            f"barrier `{m.plan.name}` is declared with {m.declared} arrivals, but {m.derived} complete its phase",
            f"the barrier opens when {m.declared} of {m.derived} have arrived"
            if early
            else f"the barrier never opens: {m.derived} of {m.declared} arrive",
            labels=tuple(share_label(verdict.protocol, s) for s in m.plan.shares),
            notes=(consequence(verdict, blame),),
            helps=helps,
            fix=fix,
        )
