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
    """TODO"""
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
