"""GS113: an `expect` states another number of bytes than the loads bring."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Edit, Fix
from gemmspec.proof.causes import Declared
from gemmspec.proof.judge import Verdict
from gemmspec.protocol.program import Load
from gemmspec.rules.protocol.blame import blamed, consequence
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS113", "tx-bytes-mismatch")
def tx_bytes_mismatch(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    The bytes that an `expect` states against those that the loads land on the barrier in one phase: every operand,
    every consumer's A, and in a pair those of both CTAs.

    ## Why it matters
    A phase completes when arrivals and bytes are both used up (PTX ISA, `mbarrier` phase completion). With too many
    bytes expected it never does; with too few it can complete when the first loads have landed, before the rest.

    ## On a GPU
    Too many: a hang on the first use. Too few: wrong tiles when one operand's load is late, and then a hang.

    ## Limits
    Leave the number out: it is derived, and follows block, types and cluster.
    """
    protocol = verdict.protocol
    for m, blame in blamed(verdict, Declared.BYTES):
        loads = [s for p in protocol.programs for s in p.walk() if isinstance(s, Load) and s.barrier == m.plan.name]
        each = " + ".join(f"{s.bytes:,} of {s.operand.value}" for s in loads)
        ctas = protocol.spec.pair
        verb = protocol.spec.barrier(m.plan.name).name
        help_text = f"write `{m.derived}`, or leave the number out"
        # The number is the last word of the statement.
        number = str(m.declared)
        edit = Edit(type(m.span)(m.span.end - len(number), m.span.end), str(m.derived))
        yield Finding(
            m.span,
            f"`{verb}` expects {m.declared:,} bytes, but {m.derived:,} land in one phase",
            f"{m.declared:,} of {m.derived:,}",
            notes=(
                f"the loads bring {each}" + (f", from each of {ctas} CTAs of the pair" if ctas > 1 else "")
                if loads
                else f"no load counts its bytes on `{verb}`",
                _early(m.declared) if m.declared < m.derived else consequence(verdict, blame),
            ),
            helps=(help_text,),
            fix=Fix(help_text, (edit,)),
        )


def _early(declared: int) -> str:
    # Seen on an H200: the bytes of a load land in pieces, so the count passes zero on the way.
    return (
        f"the phase is over as soon as {declared:,} bytes have landed: MMAs read a stage that is not whole, "
        "and what lands later unbalances the next phase, which hangs"
    )
