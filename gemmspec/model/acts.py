"""Resolves the statements of a program that do something: their verbs, and what each verb takes."""

from __future__ import annotations

from gemmspec.diagnostics import Edit, Fix, Label
from gemmspec.model.barriers import Barriers, KnownBarrier
from gemmspec.model.findings import Findings, known_words, plural, replacement, shown, shown_value
from gemmspec.model.index import resolve_ref, resolve_term
from gemmspec.model.roles import Roles
from gemmspec.model.spec import Act, Cluster, Given, Ref, Role, SlotFactor, Term
from gemmspec.record import record
from gemmspec.source import Span
from gemmspec.syntax.nodes import ActNode, IndexTerm, Number, RefNode, Value, Word
from gemmspec.vocabulary import Operand, RoleKind

# Which kinds of role a verb suits. `retire` waits for wgmma groups: that the target has them is a rule's business.
VERBS: dict[str, tuple[RoleKind, ...]] = {
    "wait": tuple(RoleKind),
    "arrive": tuple(RoleKind),
    "commit": (RoleKind.MMA,),
    "expect": (RoleKind.TMA,),
    "load": (RoleKind.TMA,),
    "mma": (RoleKind.MMA,),
    "read": (RoleKind.EPILOGUE,),
    "send": (RoleKind.EPILOGUE,),
    "add": (RoleKind.EPILOGUE,),
    "store": (RoleKind.EPILOGUE,),
    "retire": (RoleKind.MMA,),
    "sync": tuple(RoleKind),
}
SCOPES = ("warpgroup", "cta", "cluster")
MAX_BYTES = 2**20 - 1
"""PTX ISA, mbarrier: the tx-count lies in -(2^20 - 1) .. 2^20 - 1."""
MAX_GROUPS = 7
"""PTX ISA, wgmma.wait_group: N lies in 0 .. 7."""


@record
class Names:
    """What a program may name. `operands`: what the gemm calls A and B. `cluster`: None where its line is wrong."""

    roles: Roles
    barriers: Barriers
    operands: tuple[str, str]
    stages: SlotFactor | None
    cluster: Cluster | None
    findings: Findings


def resolve_act(node: ActNode, role: Role, names: Names) -> Act | None:
    """Return the action, or None where a finding says what is wrong with it."""
    findings = names.findings
    verb = node.verb.text
    if verb not in VERBS:
        meant = findings.unknown("GS008", "statement", node.verb, (*VERBS, "for", "if"))
        if meant is None or meant not in VERBS:
            return None
        verb = meant
    if role.kinds and not any(role.does(kind) for kind in VERBS[verb]):
        _wrong_kind(verb, node.verb.span, role, findings)
        return None
    match verb:
        case "wait" | "arrive" | "commit":
            return _on_barrier(verb, node, role, names)
        case "expect":
            return _expect(node, role, names)
        case "load":
            return _load(node, role, names)
        case "mma":
            return _mma(node, role, names)
        case "read":
            _no_more(node, findings, tail="from")
            return Act("read", node.span, owner=_owner(node, "from", names))
        case "send" | "add":
            _no_more(node, findings)
            if names.cluster is not None and names.cluster.split == 1:
                message = f"`{verb}` is for CTAs that share an output tile, but each has its own"
                helps = (f"delete `{verb}`, or write `split 2` into the schedule line",)
                findings.error("GS015", message, node.span, helps=helps)
                return None
            return Act(verb, node.span)
        case "store":
            _no_more(node, findings)
            return Act("store", node.span)
        case "retire":
            _no_more(node, findings, numbers=1)
            groups = _number(node, "the number of groups in flight", 0, MAX_GROUPS, findings)
            return Act("retire", node.span, number=groups)
        case _:
            return _sync(node, findings)


def _on_barrier(verb: str, node: ActNode, role: Role, names: Names) -> Act | None:
    _no_more(node, names.findings, refs=1)
    if not node.refs:
        _needs_barrier(verb, node, names.findings)
        return None
    ref = _ref(verb, node.refs[0], role, names)
    return Act(verb, node.span, ref) if ref is not None else None


def _expect(node: ActNode, role: Role, names: Names) -> Act | None:
    _no_more(node, names.findings, refs=1, numbers=1)
    if not node.refs:
        _needs_barrier("expect", node, names.findings)
        return None
    count = _number(node, "the number of bytes", 1, MAX_BYTES, names.findings)
    ref = _ref("expect", node.refs[0], role, names)
    return Act("expect", node.span, ref, number=count) if ref is not None else None


def _load(node: ActNode, role: Role, names: Names) -> Act | None:
    """Read `load B[i]`, `load A B[i]`, `load A[1] B[i]`: operands, then the barrier that is to be told."""
    findings = names.findings
    _no_more(node, findings, refs=3)
    refs = node.refs[:3]
    if not refs or (refs[-1].name.text in names.operands and refs[-1].name.text not in names.barriers.known):
        _needs_barrier("load", node, findings)
        return None
    found: dict[Operand, Span] = {}
    instance = None
    for ref in refs[:-1]:
        name = ref.name.text
        if name not in names.operands:
            findings.unknown("GS008", "operand", ref.name, names.operands)
            continue
        operand = Operand.A if name == names.operands[0] else Operand.B
        if operand in found:
            message = f"operand `{shown(name)}` is named twice"
            findings.error("GS010", message, ref.span, labels=(Label(found[operand], "first named here"),))
        found.setdefault(operand, ref.span)
        if ref.index is not None:
            instance = _consumer(ref, ref.index, operand, names)
    barrier = _ref("load", refs[-1], role, names)
    if barrier is None:
        return None
    return Act("load", node.span, barrier, tuple(found) or tuple(Operand), instance)


def _consumer(ref: RefNode, index: tuple[IndexTerm, ...], operand: Operand, names: Names) -> int | None:
    """Return whose A tile `load A[1]` names."""
    findings = names.findings
    name = shown(ref.name.text)
    span = index[0].span.to(index[-1].span) if index else ref.span
    if operand is Operand.B:
        message = f"`{name}` has no index: all consumers share it"
        findings.error("GS016", message, span, helps=(f"write `{name}`",))
        return None
    if len(index) != 1 or not isinstance(index[0].base, Number) or index[0].lag != 0:
        message = f"the index of operand `{name}` is not the number of a consumer"
        findings.error("GS016", message, span, helps=(f"write `{name}[0]`, or `{name}` for all consumers",))
        return None
    return _instance(index[0].base, names)


def _mma(node: ActNode, role: Role, names: Names) -> Act | None:
    findings = names.findings
    _no_more(node, findings, index=True, tail="into")
    stage: Term | None = None
    if node.index is not None and names.stages is not None:
        if len(node.index) != 1:
            span = node.index[0].span.to(node.index[-1].span) if node.index else node.span
            findings.error("GS016", f"`mma` takes 1 index term, but has {len(node.index)}", span)
            return None
        stage = resolve_term(node.index[0], names.stages, role, names.roles, findings)
        if stage is None:
            return None
    return Act("mma", node.span, stage=stage, owner=_owner(node, "into", names))


def _owner(node: ActNode, word: str, names: Names) -> int | None:
    """Return whose accumulator `into 0` or `from 0` names."""
    if node.tail is None or node.tail[0].text != word:
        return None
    owner = node.tail[1]
    if isinstance(owner, Number):
        return _instance(owner, names)
    if owner.text != "self":
        helps = (f"write `{word} 0`, or leave it out",)
        names.findings.error("GS008", f"`{word}` takes the number of a consumer, but has `{shown_value(owner)}`",
                             owner.span, helps=helps)  # fmt: skip
    return None


def _instance(number: Number, names: Names) -> int | None:
    consumers = names.roles.consumers
    if consumers == 0 or 0 <= number.value < consumers:
        return number.value if consumers else None
    message = f"consumer {shown(number.text)} is out of range 0 to {consumers - 1}"
    labels = tuple(
        Label(role.placement.span, f"`{shown(role.name)}` has {plural(role.instances, 'instance')}")
        for role in names.roles.known.values()
        if role.does(RoleKind.MMA)
    )
    names.findings.error("GS016", message, number.span, labels=labels)
    return None


def _sync(node: ActNode, findings: Findings) -> Act | None:
    _no_more(node, findings, refs=1)
    if not node.refs:
        message = "`sync` does not say which threads meet"
        findings.incomplete("GS001", message, node.span, node.span, ("write `sync warpgroup`",))
        return None
    scope = node.refs[0].name
    text = scope.text if scope.text in SCOPES else findings.unknown("GS008", "set of threads", scope, SCOPES)
    return Act("sync", node.span, scope=text) if text is not None else None


def _ref(verb: str, node: RefNode, role: Role, names: Names) -> Ref | None:
    """Return the barrier and slot; the role must wait for it, or be one of those that arrive."""
    known = names.barriers.known.get(node.name.text)
    if known is None:
        if not names.barriers.may_be(node.name.text):
            names.findings.unknown("GS012", "barrier", node.name, names.barriers.known)
        return None
    if not _takes_part(verb, node.name, known, role, names.findings):
        return None
    return resolve_ref(node, known, role, names.roles, names.findings)


def _takes_part(verb: str, word: Word, known: KnownBarrier, role: Role, findings: Findings) -> bool:
    barrier = known.barrier
    waits = verb == "wait"
    parties = barrier.waiters if waits else barrier.sources
    if any(party.value == role.name for party in parties):
        return True
    if known.waiters_known if waits else known.sources_known:
        part = "waits for" if waits else "arrives on"
        who = ", ".join(f"`{shown(party.value)}`" for party in parties)
        side = _span(parties)
        message = f"`{shown(role.name)}` {part} `{shown(barrier.name)}`, which is declared for {who}"
        labels = (Label(side, f"who {part} it"),) if side is not None else ()
        helps = (f"add `{shown(role.name)}` to the barrier's {'waiters' if waits else 'sources'}",)
        findings.error("GS015", message, word.span, labels=labels, helps=helps)
    return False


def _span(parties: tuple[Given[str], ...]) -> Span | None:
    return parties[0].span.to(parties[-1].span) if parties else None


def _wrong_kind(verb: str, span: Span, role: Role, findings: Findings) -> None:
    kinds = " or ".join(f"`{kind.value}`" for kind in VERBS[verb])
    have = ", ".join(f"`{kind.value}`" for kind in role.kinds)
    message = f"`{verb}` is a statement of {kinds} roles, but `{shown(role.name)}` is of kind {have}"
    fitting = [known for known, owners in VERBS.items() if any(role.does(kind) for kind in owners)]
    helps = (f"move it to the program of a role of kind {kinds}",)
    labels = (Label(role.name_span, "the role is declared here"),)
    findings.error("GS015", message, span, labels=labels, notes=(known_words(fitting),), helps=helps)


def _needs_barrier(verb: str, node: ActNode, findings: Findings) -> None:
    message = f"`{verb}` does not name a barrier"
    findings.incomplete("GS001", message, node.span, node.span, (f"write `{verb} NAME`",))


def _number(node: ActNode, what: str, low: int, high: int, findings: Findings) -> int | None:
    return findings.in_range(what, node.numbers[0], low, high) if node.numbers else None


def _no_more(
    node: ActNode, findings: Findings, *, refs: int = 0, numbers: int = 0, index: bool = False, tail: str | None = None
) -> None:
    """Say which operands a verb does not take."""
    extra: list[Span] = [ref.span for ref in node.refs[refs:]]
    extra += [number.span for number in node.numbers[numbers:]]
    if node.index is not None and not index:
        extra += [term.span for term in node.index]
    if node.tail is not None and node.tail[0].text != tail:
        _tail(node.tail, tail, node.verb, findings)
    if extra:
        span = Span(min(s.start for s in extra), max(s.end for s in extra))
        text = shown(findings.source.snippet(span))
        findings.error("GS001", f"`{node.verb.text}` does not take `{text}`", span, helps=(f"delete `{text}`",))


def _tail(tail: tuple[Word, Value], wanted: str | None, verb: Word, findings: Findings) -> None:
    word, value = tail
    if wanted is not None:
        message = f"`{verb.text}` takes `{wanted}`, but has `{word.text}`"
        findings.error("GS008", message, word.span, helps=(f"write `{wanted}`",), fix=replacement(word.span, wanted))
        return
    span = word.span.to(value.span)
    text = shown(findings.source.snippet(span))
    fix = Fix(f"delete `{text}`", (Edit(span, ""),))
    findings.error("GS001", f"`{verb.text}` does not take `{text}`", span, helps=(f"delete `{text}`",), fix=fix)
