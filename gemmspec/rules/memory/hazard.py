"""How a memory hazard is told: two accesses, one place, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gemmspec.diagnostics import Label
from gemmspec.proof import Fault, Kind
from gemmspec.proof.judge import Verdict
from gemmspec.proof.words import doing, effect, for_which_k, when, who
from gemmspec.rules.rule import Finding


def hazards(
    verdict: Verdict, kind: Kind, message: Callable[[Fault], str], chosen: Callable[[Fault], bool] = lambda _: True
) -> Iterator[Finding]:
    """Yield the faults of one kind that nothing else explains."""
    protocol = verdict.protocol
    spec = protocol.spec
    for fault in verdict.faults:
        if fault.kind is not kind or not chosen(fault):
            continue
        other = fault.other
        labels: tuple[Label, ...] = ()
        notes = [f"{effect(protocol, fault)}, {for_which_k(fault)}"]
        if other:
            text = f"{who(spec, other)} {doing(other)}, in {when(other)}"
            if other.span != fault.at.span:
                labels = (Label(other.span, text),)
            else:
                notes.append(f"the other access: {text}")
        yield Finding(
            fault.at.span,
            message(fault),
            f"{who(spec, fault.at)} {doing(fault.at)}, in {when(fault.at)}",
            labels=labels,
            notes=tuple(notes),
        )
