"""GS116: a barrier is signalled, and no role waits for it."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Severity
from gemmspec.proof.causes import Lack, gaps
from gemmspec.proof.judge import Verdict
from gemmspec.rules.protocol.blame import lacking
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS116", "unobserved-barrier", Severity.WARNING)
def unobserved_barrier(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That every role that a barrier names as its waiter does wait for it.

    ## Why it matters
    A barrier that is signalled and not waited for orders nothing. It may be left over, or the wait may have been
    forgotten where it happens to do no harm yet.

    ## Limits
    Where the missing wait does harm, `use-without-wait` says so, as an error.
    """
    told = {gap.plan.name for gap, _ in lacking(verdict, Lack.WAIT)}
    for gap in gaps(verdict.protocol):
        if gap.what is Lack.WAIT and gap.plan.name not in told:
            yield Finding(
                gap.span,
                f"`{gap.role}` is declared to wait for `{gap.plan.name}`, but its program never does",
                "signalled, and not waited for",
            )
