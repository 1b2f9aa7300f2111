"""Resolves `role` lines: kinds, placement, properties."""

from __future__ import annotations

from gemmspec.diagnostics import Label
from gemmspec.model.findings import Findings, backwards, known_words, shown, shown_value
from gemmspec.model.items import Items, Lost
from gemmspec.model.properties import by_name, choice, number, only_for, surplus, takes
from gemmspec.model.spec import Given, Placement, Role
from gemmspec.record import record
from gemmspec.source import Span
from gemmspec.syntax.nodes import BarrierNode, Number, PlacementNode, Property, Range, RoleNode, Word
from gemmspec.vocabulary import Operand, Release, RoleKind

KINDS = tuple(kind.value for kind in RoleKind)
# Which kind of role has a property; `registers` suits all.
OWNERS = {"chunk": "epilogue", "buffers": "epilogue", "release": "epilogue", "multicast": "tma"}
PROPERTIES = ("chunk", "buffers", "registers", "release", "multicast")
LAST_WARP = 3
LAST_WARPGROUP = 7
"""A CTA has up to 1024 threads: 8 warpgroups of 128."""
MAX_CHUNK = 4096
MAX_BUFFERS = 64
MAX_REGISTERS = 1024
LANGUAGE_WORDS = frozenset({"stages", "accumulators", "stage", "acc", "self"})
"""Words that stand where the name of a role or barrier may stand too."""


@record
class Roles:
    """The roles by name. `sound` is false where a role has no kind or no place, so that no spec can be made.

    `repeated`: two roles share a name, so that one of them was surely meant to have a name that seems unknown.
    """

    known: dict[str, Role]
    lost: frozenset[str]
    sound: bool
    repeated: bool

    def may_be(self, name: str) -> bool:
        """Whether a role of that name may have been meant to exist, though none is known."""
        return name in self.lost or self.repeated

    @property
    def consumers(self) -> int:
        """How many mma instances a CTA has: each has its own A tile and its own accumulators."""
        return sum(role.instances for role in self.known.values() if role.does(RoleKind.MMA))


def resolve_roles(items: Items, operands: tuple[str, str], findings: Findings) -> Roles:
    """Return the roles. `operands`: what the gemm calls A and B."""
    known: dict[str, Role] = {}
    sound = True
    for node in items.roles:
        role, whole = _role(node, operands, findings)
        sound = sound and whole
        known.setdefault(role.name, role)
    return Roles(known, items.lost.names, sound, len(known) < len(items.roles))


def check_names(items: Items, operands: tuple[str, str], findings: Findings) -> None:
    """Say which names of roles and barriers are taken: by each other, or by words of the language."""
    first: dict[str, Span] = {}
    for node in (*items.roles, *items.barriers):
        name, span = node.name.text, node.name.span
        what = "barrier" if isinstance(node, BarrierNode) else "role"
        if name in LANGUAGE_WORDS or name in operands:
            meaning = "the name of an operand" if name in operands else "a word of the language"
            message = f"{what} is named `{shown(name)}`, which is {meaning}"
            findings.error("GS010", message, span, helps=("choose another name",))
        elif name in first:
            labels = (Label(first[name], "first named here"),)
            message = f"{what} `{shown(name)}` has the name of an earlier role or barrier"
            findings.error("GS010", message, span, labels=labels, helps=("choose another name",))
        else:
            first[name] = span


def check_all_kinds(roles: Roles, lost: Lost, title: Span, findings: Findings) -> None:
    """Say which kinds of role are missing; silent where some role is not known well enough."""
    if (
        not roles.known
        or roles.repeated
        or "role" in lost.keywords
        or any(not role.kinds for role in roles.known.values())
    ):
        return
    for kind in RoleKind:
        if not any(role.does(kind) for role in roles.known.values()):
            article = "a" if kind is RoleKind.TMA else "an"
            helps = (f"add {article} `{kind.value}` role, or the kind to a role that does both",)
            findings.error("GS018", f"no role is of kind `{kind.value}`", title, helps=helps)


def find_role(word: Word, roles: Roles, findings: Findings) -> Role | None:
    """Return the role of that name; an unknown one is a finding, unless another one may have been meant to have it."""
    if word.text in roles.known:
        return roles.known[word.text]
    if not roles.may_be(word.text):
        findings.unknown("GS011", "role", word, roles.known)
    return None


def _role(node: RoleNode, operands: tuple[str, str], findings: Findings) -> tuple[Role, bool]:
    kinds = _kinds(node.kinds, findings)
    placement, placed = _placement(node.placement, findings)
    props = by_name(node.properties, PROPERTIES, findings)
    if kinds and all(kind.text in KINDS for kind in node.kinds):
        props = only_for(props, OWNERS, node.kinds, f"`{shown(node.name.text)}`", findings)
    role = Role(
        name=node.name.text,
        name_span=node.name.span,
        kinds=kinds,
        placement=placement,
        chunk=number(props.get("chunk"), 1, MAX_CHUNK, findings),
        buffers=number(props.get("buffers"), 1, MAX_BUFFERS, findings),
        registers=number(props.get("registers"), 1, MAX_REGISTERS, findings),
        release=_release(props.get("release"), findings),
        multicast=_multicast(props.get("multicast"), operands, findings),
        span=node.span,
    )
    return role, placed and bool(kinds)


def _kinds(words: tuple[Word, ...], findings: Findings) -> tuple[RoleKind, ...]:
    """Return the kinds without repetition; a misspelled one counts as the one that was meant."""
    kinds: dict[RoleKind, Span] = {}
    for word in words:
        text = word.text if word.text in KINDS else findings.unknown("GS008", "role kind", word, KINDS)
        if text is None:
            continue
        kind = RoleKind(text)
        if kind in kinds:
            message = f"kind `{text}` is named twice"
            findings.error("GS010", message, word.span, labels=(Label(kinds[kind], "first named here"),))
        kinds.setdefault(kind, word.span)
    return tuple(kinds)


def _placement(node: PlacementNode, findings: Findings) -> tuple[Placement, bool]:
    """Return the placement, and whether it is one; a backwards range counts as the other way round."""
    groups, groups_fit = _places(node.warpgroups, "warpgroup", LAST_WARPGROUP, findings)
    if node.warps is None:
        return Placement(groups, None, node.span), groups_fit
    warps, warps_fit = _places(node.warps, "warp", LAST_WARP, findings)
    single = groups[0] == groups[1]
    if not single:
        message = f"warps are named in {groups[1] - groups[0] + 1} warpgroups, but only those of 1 warpgroup can be"
        helps = (f"write `on warpgroup {groups[0]}`, or leave the warps out",)
        findings.error("GS014", message, node.warpgroups.span, helps=helps)
    return Placement(groups, warps, node.span), groups_fit and warps_fit and single


def _places(node: Range, what: str, last: int, findings: Findings) -> tuple[tuple[int, int], bool]:
    # A place far outside stands for itself only as far as it does not make the role's instances run into millions.
    low, high = (max(0, min(n.value, last + 1)) for n in (node.first, node.last))
    fits = True
    for end in dict.fromkeys((node.first, node.last)):
        if not 0 <= end.value <= last:
            message = f"{what} {shown(end.text)} is out of range 0 to {last}"
            notes = ("warps are counted within their warpgroup of 4",) if what == "warp" else ()
            findings.error("GS014", message, end.span, notes=notes)
            fits = False
    if fits and high < low:
        backwards(f"{what} range", node, "GS014", findings)
    return (min(low, high), max(low, high)), fits


def _release(prop: Property | None, findings: Findings) -> Given[Release] | None:
    """Read `release after read` or `release after store`."""
    if prop is None or not takes(prop, 2, "`after read` or `after store`", findings):
        return None
    after, when = prop.values[:2]
    if choice(after, "word", ("after",), findings) is None:
        return None
    text = choice(when, "moment of release", tuple(r.value for r in Release), findings)
    return Given(Release(text), prop.span) if text is not None else None


def _multicast(
    prop: Property | None, operands: tuple[str, str], findings: Findings
) -> Given[tuple[Operand, ...]] | None:
    """Read `multicast A`, `multicast B` or `multicast A B`."""
    if prop is None:
        return None
    if not prop.values:
        findings.error("GS001", "`multicast` takes one or two operands, but has 0 values", prop.span)
        return None
    if len(prop.values) > 2:
        surplus(prop.values[2:], "`multicast` takes one or two operands", findings)
    found: dict[Operand, Span] = {}
    for value in prop.values[:2]:
        if isinstance(value, Number):
            message = f"`multicast` of a tma role takes operands, but has `{shown_value(value)}`"
            findings.error("GS008", message, value.span, notes=(known_words(operands),))
            return None
        text = choice(value, "operand", operands, findings)
        if text is None:
            return None
        operand = Operand.A if text == operands[0] else Operand.B
        if operand in found:
            message = f"operand `{shown(text)}` is named twice"
            findings.error("GS010", message, value.span, labels=(Label(found[operand], "first named here"),))
        found.setdefault(operand, value.span)
    return Given(tuple(found), prop.span)
