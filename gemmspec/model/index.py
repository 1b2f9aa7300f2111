"""Resolves a barrier's index in a program, `full[stage - 1]`, or derives the one that was left out."""

from __future__ import annotations

from gemmspec.diagnostics import Label
from gemmspec.model.barriers import KnownBarrier
from gemmspec.model.findings import Findings, plural, replacement, shown
from gemmspec.model.roles import Roles
from gemmspec.model.spec import Ref, Role, SlotFactor, Term
from gemmspec.source import Span
from gemmspec.suggest import suggest
from gemmspec.syntax.nodes import IndexTerm, Number, RefNode

WORDS = ("stage", "acc", "self")


def resolve_ref(node: RefNode, known: KnownBarrier, user: Role, roles: Roles, findings: Findings) -> Ref | None:
    """Return the barrier and slot that a statement of role `user` names; None where that is a finding."""
    barrier = known.barrier
    if not known.slots_known:
        return None
    if node.index is None:
        terms = [_derived(factor, barrier.name, node.span, user, roles, findings) for factor in barrier.factors]
    elif len(node.index) != len(barrier.factors):
        span = node.index[0].span.to(node.index[-1].span) if node.index else node.span
        message = (
            f"`{shown(barrier.name)}` takes {plural(len(barrier.factors), 'index term')}, but has {len(node.index)}"
        )
        labels = (Label(barrier.slots_span, "its slots are stated here"),)
        findings.error("GS016", message, span, labels=labels)
        return None
    else:
        pairs = zip(node.index, barrier.factors, strict=True)
        terms = [resolve_term(term, factor, user, roles, findings) for term, factor in pairs]
    index = tuple(term for term in terms if term is not None)
    if len(index) < len(terms):
        return None
    cursors = [term for term in index if term.kind == "cursor"]
    if len(cursors) > 1:
        message = f"the index of `{shown(barrier.name)}` follows {len(cursors)} cursors, but a role has 1 for a barrier"
        labels = (Label(barrier.slots_span, "its slots are stated here"),)
        helps = ("write a number or `self` for all but one of them",)
        findings.error("GS016", message, cursors[1].span, labels=labels, helps=helps)
        return None
    return Ref(barrier.name, index, node.span)


def resolve_term(term: IndexTerm, factor: SlotFactor, user: Role, roles: Roles, findings: Findings) -> Term | None:
    """Return one written term of an index into `factor`; None where it is a finding."""
    if isinstance(term.base, Number):
        return _constant(term, term.base, factor, findings)
    word = term.base.text
    if word not in WORDS:
        _unknown(term, term.base.span, word, findings)
        return None
    if word == "self":
        return _self(term, factor, user, findings)
    right = _word_for(factor, roles)
    if word != right and (word, right) != ("stage", "0"):
        message = f"`{word}` is no index into `{shown(factor.text)}`"
        fix = replacement(term.base.span, right) if right in WORDS and term.lag == 0 else None
        labels = (Label(factor.span, "the slots it counts"),)
        findings.error("GS016", message, term.base.span, labels=labels, helps=(f"write `{right}`",), fix=fix)
        return None
    if term.lag < 0:
        message = f"the index reaches {plural(-term.lag, 'iteration')} ahead, but only earlier ones are known"
        findings.error("GS016", message, term.span)
        return None
    if term.lag >= factor.value and term.lag > 0:
        message = (
            f"the index reaches {plural(term.lag, 'iteration')} back, but `{shown(factor.text)}` "
            f"keeps the last {factor.value}"
        )
        findings.error("GS016", message, term.span, labels=(Label(factor.span, "the slots it counts"),))
        return None
    return Term("cursor", 0, term.lag, term.span)


def _derived(factor: SlotFactor, barrier: str, span: Span, user: Role, roles: Roles, findings: Findings) -> Term | None:
    word = _word_for(factor, roles)
    if word in ("stage", "acc"):
        return Term("cursor", 0, 0, span)
    if factor.value == 1:
        return Term("const", 0, 0, span)
    if user.instances == factor.value:
        return Term("self", 0, 0, span)
    message = (
        f"`{shown(barrier)}` needs an index: it has a slot for each of {factor.value} `{shown(factor.text)}`, "
        f"but `{shown(user.name)}` has {plural(user.instances, 'instance')}"
    )
    helps = (f"write `{shown(barrier)}[0]`, or another number below {factor.value}",)
    findings.error("GS016", message, span, labels=(Label(factor.span, "the slots it counts"),), helps=helps)
    return None


def _word_for(factor: SlotFactor, roles: Roles) -> str:
    """Return the usual index word for a factor."""
    if factor.text == "accumulators":
        return "acc"
    if factor.text in roles.known:
        return "self"
    return "stage" if factor.text == "stages" or factor.value > 1 else "0"


def _constant(term: IndexTerm, number: Number, factor: SlotFactor, findings: Findings) -> Term | None:
    if term.lag != 0:
        findings.error("GS016", f"`{shown(number.text)}` is a fixed slot, which has no earlier one", term.span)
        return None
    if not 0 <= number.value < factor.value:
        message = f"index {shown(number.text)} is out of range 0 to {factor.value - 1}"
        labels = (Label(factor.span, f"`{shown(factor.text)}` is {plural(factor.value, 'slot')}"),)
        findings.error("GS016", message, number.span, labels=labels)
        return None
    return Term("const", number.value, 0, term.span)


def _self(term: IndexTerm, factor: SlotFactor, user: Role, findings: Findings) -> Term | None:
    if term.lag != 0:
        findings.error("GS016", "`self` is a fixed slot, which has no earlier one", term.span)
        return None
    if user.instances > factor.value:
        message = (
            f"`self` runs from 0 to {user.instances - 1} in `{shown(user.name)}`, "
            f"but `{shown(factor.text)}` is {plural(factor.value, 'slot')}"
        )
        findings.error("GS016", message, term.span, labels=(Label(factor.span, "the slots it counts"),))
        return None
    return Term("self", 0, 0, term.span)


def _unknown(term: IndexTerm, span: Span, word: str, findings: Findings) -> None:
    meant = suggest(word, WORDS)
    helps = (f"did you mean `{meant}`?",) if meant is not None else ("write `stage`, `acc`, `self` or a number",)
    fix = replacement(span, meant) if meant is not None else None
    findings.error("GS016", f"unknown index `{shown(word)}`", span, helps=helps, fix=fix)
