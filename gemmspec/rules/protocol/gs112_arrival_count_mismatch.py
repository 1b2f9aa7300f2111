"""GS112: a barrier is declared with another number of arrivals than complete its phase."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof.causes import Declared
from gemmspec.proof.judge import Verdict
from gemmspec.rules.protocol.blame import blamed, consequence, rewrite, share_label
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS112", "arrival-count-mismatch")
def arrival_count_mismatch(verdict: Verdict) -> Iterator[Finding]:
    """TODO"""
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
