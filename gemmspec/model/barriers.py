"""Resolves `barrier` lines: slots, who arrives, who waits, and how."""

from __future__ import annotations

from gemmspec.diagnostics import Label
from gemmspec.model.findings import Findings, plural, shown, shown_value
from gemmspec.model.items import Items
from gemmspec.model.properties import by_name, choice, number, takes
from gemmspec.model.roles import Roles, find_role
from gemmspec.model.spec import At, Barrier, Cluster, Given, Mask, SlotFactor
from gemmspec.record import record
from gemmspec.source import Span
from gemmspec.syntax.nodes import BarrierNode, Number, Property, SlotsNode, Value, Word
from gemmspec.vocabulary import Group, Via

PROPERTIES = ("via", "arrivals", "phase", "at", "multicast")
VIAS = tuple(via.value for via in Via)
AT_WORDS = ("own", "leader", "cta")
# `cross` is a group of the Protocol, not a word of the language.
GROUPS = ("pair", "cluster", "row", "column", "peers", "own")
MAX_SLOTS = 32
"""Of one factor: no ring that fits shared memory is deeper, and the proof's time grows with the depth squared."""
MAX_BARRIERS = 128
MAX_PRODUCT = 256
MAX_ARRIVALS = 2**20 - 1
"""PTX ISA, mbarrier: the expected arrival count lies in 1 .. 2^20 - 1."""


@record
class KnownBarrier:
    """A barrier that programs may name. Where a part of its line was wrong, what depends on that part is not judged."""

    barrier: Barrier
    sources_known: bool
    waiters_known: bool
    slots_known: bool


@record
class Counts:
    """What `stages` and `accumulators` stand for, as far as that is known."""

    stages: int | None
    accumulators: int | None


@record
class Barriers:
    """The barriers by name. `repeated`: two share a name, and one may have been meant to have an unknown one."""

    known: dict[str, KnownBarrier]
    lost: frozenset[str]
    repeated: bool

    def may_be(self, name: str) -> bool:
        """Whether a barrier of that name may have been meant to exist, though none is known."""
        return name in self.lost or self.repeated

    @property
    def complete(self) -> tuple[Barrier, ...]:
        """The barriers that have a source and a waiter."""
        return tuple(b.barrier for b in self.known.values() if b.barrier.sources and b.barrier.waiters)


def resolve_barriers(
    items: Items, roles: Roles, counts: Counts, cluster: Cluster | None, findings: Findings
) -> Barriers:
    """Return the barriers; of two that share a name the first. `cluster` is None where its line is wrong."""
    known: dict[str, KnownBarrier] = {}
    if len(items.barriers) > MAX_BARRIERS:
        message = f"the spec has {len(items.barriers):,} barriers, more than {MAX_BARRIERS}"
        findings.error("GS006", message, items.barriers[MAX_BARRIERS].span)
    for node in items.barriers[:MAX_BARRIERS]:
        barrier = _barrier(node, roles, counts, cluster, findings)
        known.setdefault(node.name.text, barrier)
    return Barriers(known, items.lost.names, len(known) < len(items.barriers))


def _barrier(
    node: BarrierNode, roles: Roles, counts: Counts, cluster: Cluster | None, findings: Findings
) -> KnownBarrier:
    factors, slots_known = _slots(node.slots, node.name.span, roles, counts, findings)
    sources, sources_known = _roles(node.sources, roles, findings)
    waiters, waiters_known = _roles(node.waiters, roles, findings)
    props = by_name(node.properties, PROPERTIES, findings)
    barrier = Barrier(
        name=node.name.text,
        name_span=node.name.span,
        factors=factors,
        slots_span=node.slots.span if node.slots is not None else node.name.span,
        sources=sources,
        waiters=waiters,
        via=_via(props.get("via"), findings),
        arrivals=number(props.get("arrivals"), 1, MAX_ARRIVALS, findings),
        phase=number(props.get("phase"), 0, 1, findings),
        at=_at(props.get("at"), cluster, findings),
        multicast=_mask(props.get("multicast"), cluster, findings),
        span=node.span,
    )
    return KnownBarrier(barrier, sources_known, waiters_known, slots_known)


def _roles(words: tuple[Word, ...], roles: Roles, findings: Findings) -> tuple[tuple[Given[str], ...], bool]:
    """Return the roles named, each once, and whether all of them are known."""
    found: dict[str, Span] = {}
    known = True
    for word in words:
        role = find_role(word, roles, findings)
        if role is None:
            known = False
        elif role.name in found:
            message = f"role `{shown(role.name)}` is named twice"
            findings.error("GS010", message, word.span, labels=(Label(found[role.name], "first named here"),))
        else:
            found[role.name] = word.span
    return tuple(Given(name, span) for name, span in found.items()), known


def _slots(
    node: SlotsNode | None, name: Span, roles: Roles, counts: Counts, findings: Findings
) -> tuple[tuple[SlotFactor, ...], bool]:
    """Return the factors of the number of slots, 1 where they are left out, and whether all of them are known."""
    if node is None or not node.factors:
        return (SlotFactor("1", 1, node.span if node is not None else name),), True
    factors: list[SlotFactor] = []
    known = True
    for factor in node.factors:
        value = _factor(factor, roles, counts, findings)
        known = known and value is not None
        factors.append(SlotFactor(factor.text, value if value is not None else 1, factor.span))
    slots = 1
    for factor in factors:
        slots *= factor.value
    if slots > MAX_PRODUCT:
        message = f"the barrier has {slots} slots, out of range 1 to {MAX_PRODUCT}"
        findings.error("GS006", message, node.span)
        known = False
    return tuple(factors), known


def _factor(factor: Value, roles: Roles, counts: Counts, findings: Findings) -> int | None:
    if isinstance(factor, Number):
        return findings.in_range("the number of slots", factor, 1, MAX_SLOTS)
    match factor.text:
        case "stages":
            return counts.stages
        case "accumulators":
            return counts.accumulators
        case name if name in roles.known:
            return roles.known[name].instances
        case name:
            if not roles.may_be(name):
                words = {"stages", "accumulators"} | set(roles.known)
                findings.unknown("GS008", "slot count", factor, words)
            return None


def _via(prop: Property | None, findings: Findings) -> Given[Via] | None:
    if prop is None or not takes(prop, 1, "one of " + ", ".join(f"`{via}`" for via in VIAS), findings):
        return None
    text = choice(prop.values[0], "way to arrive", VIAS, findings)
    return Given(Via(text), prop.span) if text is not None else None


def _at(prop: Property | None, cluster: Cluster | None, findings: Findings) -> Given[At] | None:
    """Read `at own`, `at leader` or `at cta 0`."""
    if prop is None:
        return None
    takes_what = "`own`, `leader` or `cta` and a number"
    if not prop.values:
        takes(prop, 1, takes_what, findings)
        return None
    word = choice(prop.values[0], "place to arrive", AT_WORDS, findings)
    if word is None:
        return None
    if word != "cta":
        takes(prop, 1, takes_what, findings)
        return Given(At(Group(word), None), prop.span)
    if not takes(prop, 2, takes_what, findings):
        return None
    rank = prop.values[1]
    if not isinstance(rank, Number):
        findings.error("GS008", f"`at cta` takes a number, but has `{shown_value(rank)}`", rank.span)
        return None
    if cluster is not None and not 0 <= rank.value < cluster.size:
        message = f"`at cta` is {shown(rank.text)}, but the cluster has {plural(cluster.size, 'CTA')}"
        findings.error("GS006", message, rank.span, labels=_cluster_label(cluster))
        return None
    return Given(At(None, rank.value), prop.span) if cluster is not None else None


def _mask(prop: Property | None, cluster: Cluster | None, findings: Findings) -> Given[Mask] | None:
    """Read `multicast pair` or `multicast 0b11`."""
    takes_what = "a mask or one of " + ", ".join(f"`{group}`" for group in GROUPS)
    if prop is None or not takes(prop, 1, takes_what, findings):
        return None
    value = prop.values[0]
    if not isinstance(value, Number):
        word = choice(value, "set of CTAs", GROUPS, findings)
        return Given(Mask(Group(word), None), prop.span) if word is not None else None
    if value.value <= 0:
        findings.error("GS006", f"the mask {shown(value.text)} names no CTA of the cluster", value.span)
        return None
    if cluster is None:
        return None
    if value.value.bit_length() > cluster.size:
        message = (
            f"the mask {shown(value.text)} names CTA {value.value.bit_length() - 1}, "
            f"but the cluster has {plural(cluster.size, 'CTA')}"
        )
        findings.error("GS006", message, value.span, labels=_cluster_label(cluster))
        return None
    return Given(Mask(None, value.value), prop.span)


def _cluster_label(cluster: Cluster) -> tuple[Label, ...]:
    """Point to the cluster line, if there is one."""
    if cluster.size == 1:
        return ()
    return (Label(cluster.span, f"its ranks are 0 to {cluster.size - 1}"),)
