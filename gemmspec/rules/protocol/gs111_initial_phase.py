"""GS111: waiters start with the wrong parity."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof.causes import Declared
from gemmspec.proof.judge import Verdict
from gemmspec.rules.protocol.blame import blamed, consequence, rewrite
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS111", "initial-phase")
def initial_phase(verdict: Verdict) -> Iterator[Finding]:
    """TODO"""
    for m, blame in blamed(verdict, Declared.PHASE):
        plan = m.plan
        waiter = plan.barrier.waiters[0].value
        label = (
            "blocks on a fresh barrier, though every slot starts free"
            if m.derived
            else "passes on a fresh barrier, though no slot has been filled"
        )
        helps, fix = rewrite(m, f"phase {m.derived}")
        yield Finding(
            m.span,
            f"`{waiter}` starts on phase {m.declared} of `{plan.name}`, but has to start on phase {m.derived}",
            label,
            notes=(consequence(verdict, blame),),
            helps=helps,
            fix=fix,
        )
