"""GS111: waiters start with the wrong parity."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof.causes import Declared
from gemmspec.proof.judge import Verdict
from gemmspec.rules.protocol.blame import blamed, consequence, rewrite
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS111", "initial-phase")
def initial_phase(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    The parity that the waiters of a barrier start with. Whoever waits for data starts on phase 0, whoever waits for
    room starts on phase 1.

    ## Why it matters
    An mbarrier starts in phase 0, which is not complete: a wait on parity 0 blocks, a wait on parity 1 passes at
    once (PTX ISA, `mbarrier.try_wait`). At the start every slot is free and none is filled, so a producer that
    starts on 0 waits for a release that can't come, and a consumer that starts on 1 reads what nobody wrote.

    ## On a GPU
    A producer on phase 0 hangs in its first k tile. A consumer on phase 1 gives garbage in the first `stages` k
    tiles of each cluster, or in all of them.

    ## Limits
    A phase that differs from the derived one and harms nothing is not reported.
    """
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
