"""GS110: agents wait for each other, or for what nobody will do."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Label
from gemmspec.proof import Kind
from gemmspec.proof.judge import Verdict
from gemmspec.proof.words import cycle, for_which_k, hang, lack, when, who
from gemmspec.rules.rule import Finding, proof_rule


@proof_rule("GS110", "deadlock")
def deadlock(verdict: Verdict) -> Iterator[Finding]:
    """
    ## What it checks
    That no role ever waits for ever. The proof executes the roles of one cluster until they end or none can go on;
    if none can, it names the roles that wait for each other, in which tile and k tile, and what each barrier still
    lacks.

    ## Why it matters
    A pipeline that hangs for one K may run for another: whether a ring is deep enough depends on how far one role
    has to run ahead of the other.

    ## On a GPU
    The kernel never ends. `nvidia-smi` shows full load, the debugger shows every warp in `mbarrier.try_wait`, and
    nothing says which wait came first.

    ## Limits
    Told only where no declared value and no missing statement explains the hang: those have rules of their own.
    """
    protocol = verdict.protocol
    spec = protocol.spec
    for fault in verdict.faults:
        if fault.kind is not Kind.DEADLOCK:
            continue
        loop = cycle(fault)
        if not loop:
            yield Finding(
                fault.at.span,
                f"deadlock: {hang(protocol, fault)}",
                "only the next tile would arrive here, and the last tile has none",
            )
            continue
        notes: list[str] = []
        for b in loop:
            notes.append(
                f"{who(spec, b.at)} waits for phase {b.phase} of `{b.barrier}[{b.slot}]` in {when(b.at)}: "
                f"{b.completed} complete, the next lacks {lack(spec, b)}"
            )
        notes.append(f"this happens {for_which_k(fault)}")
        first, *others = loop
        labels = tuple(Label(b.at.span, f"{who(spec, b.at)} waits here for `{b.barrier}[{b.slot}]`") for b in others)
        yield Finding(
            first.at.span,
            f"deadlock: {hang(protocol, fault)}",
            f"{who(spec, first.at)} waits here for `{first.barrier}[{first.slot}]`",
            labels=tuple(label for label in labels if label.span != first.at.span),
            notes=tuple(notes),
        )
