"""GS115: arrivals land in a CTA where nobody waits for them."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.proof.causes import Declared
from gemmspec.proof.judge import Verdict
from gemmspec.rules.protocol.blame import blamed, consequence, rewrite
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS115", "arrival-at-wrong-cta")
def arrival_at_wrong_cta(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    The CTA whose barrier arrivals land on (`at`), against the CTA in which the waiter runs.

    ## Why it matters
    In a pair the MMA runs in the leader CTA alone. What the other CTA has to tell it (bytes landed, accumulator
    read) must arrive on the leader's barrier; on its own copy nobody waits.

    ## On a GPU
    A hang: at once for the loads, at the second tile for the accumulator.

    ## Limits
    Reported where it leads to a fault; leave `at` out and it is derived.
    """
    spec = verdict.protocol.spec
    for m, blame in blamed(verdict, Declared.AT):
        derived = m.plan.derived_targets
        text = "at cta 0" if set(derived.masks) == {1} else derived.words(spec.cluster, spec.pair)
        waiter = m.plan.barrier.waiters[0].value
        helps, fix = rewrite(m, text)
        yield Finding(
            m.span,
            f"arrivals on `{m.plan.name}` land in CTA {m.declared.bit_length() - 1}, "
            f"but `{waiter}` waits in CTA {m.derived.bit_length() - 1}",
            "nobody waits there",
            notes=(consequence(verdict, blame),),
            helps=helps,
            fix=fix,
        )
