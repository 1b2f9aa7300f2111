"""What the rules on declared values share: the labels, the consequence, and the edit that mends."""

from __future__ import annotations

from collections.abc import Iterator

from gemmspec.diagnostics import Edit, Fix, Label
from gemmspec.proof.causes import Declared, Gap, Lack, Mismatch
from gemmspec.proof.judge import Blame, Verdict
from gemmspec.proof.ways import OneWay
from gemmspec.proof.words import effect
from gemmspec.protocol import Protocol
from gemmspec.protocol.plan import Share


def blamed(verdict: Verdict, what: Declared) -> Iterator[tuple[Mismatch, Blame]]:
    """Yield the declared values of one kind that lead to a fault."""
    for blame in verdict.blames:
        if isinstance(blame.cause, Mismatch) and blame.cause.what is what:
            yield blame.cause, blame


def lacking(verdict: Verdict, what: Lack) -> Iterator[tuple[Gap, Blame]]:
    """Yield the structural causes of one kind that lead to a fault."""
    for blame in verdict.blames:
        if isinstance(blame.cause, Gap) and blame.cause.what is what:
            yield blame.cause, blame


def one_way(verdict: Verdict, *, forward: bool) -> Iterator[tuple[OneWay, Blame]]:
    """Yield the rings that lack the barrier of one direction, where that leads to a fault."""
    for blame in verdict.blames:
        if isinstance(blame.cause, OneWay) and blame.cause.forward is forward:
            yield blame.cause, blame


def consequence(verdict: Verdict, blame: Blame) -> str:
    """Return the note that says what happens on the GPU."""
    return effect(verdict.protocol, blame.fault)


def rewrite(mismatch: Mismatch, text: str | None) -> tuple[tuple[str, ...], Fix]:
    """Return the help and the fix that write the derived value in place of the declared one; None has no words."""
    if text is None:
        return ("leave it out",), Fix("leave it out", (Edit(mismatch.span, ""),))
    return (f"write `{text}`, or leave it out",), Fix(f"write `{text}`", (Edit(mismatch.span, text),))


def share_label(protocol: Protocol, share: Share) -> Label:
    """Return the label on a role that says what it contributes to one phase."""
    spec = protocol.spec
    role = spec.role(share.role)
    threads = protocol.program(share.role).threads
    if share.each == threads > 1:
        what = f"all {share.each} threads of this warpgroup arrive"
    elif share.each == 1:
        what = "each instance arrives once" if share.instances > 1 else "arrives once"
    else:
        what = f"arrives {share.each} times"
    many = f", {share.instances} instances" if share.instances > 1 else ""
    ctas = f", in each of {share.ctas} CTAs" if share.ctas > 1 else ""
    return Label(role.placement.span, what + many + ctas)
