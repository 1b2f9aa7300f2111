"""The verdict on a protocol: the faults that it has, each folded into its cause, one defect once.

A declared value is a cause if leaving it out (so that it is derived) makes faults go away. What is left after that
is told by missing structure where there is any, and by the faults themselves otherwise.
"""

from __future__ import annotations

from itertools import combinations

from gemmspec.proof import prove
from gemmspec.proof.causes import Gap, Lack, Mismatch, gaps, mismatches, repair
from gemmspec.proof.fault import Fault, Kind
from gemmspec.proof.ways import OneWay, one_ways
from gemmspec.protocol import Protocol, derive
from gemmspec.protocol.program import BarrierPlan
from gemmspec.record import record

# Which fault speaks for its ring when there are several: memory first, since that is what goes wrong in the end.
_RANK = (
    Kind.UNINITIALISED,
    Kind.READ_EARLY,
    Kind.OVERWRITE,
    Kind.WRITE_WRITE,
    Kind.NOT_VISIBLE,
    Kind.WRONG_DATA,
    Kind.MIXED_ARRIVALS,
    Kind.DEADLOCK,
    Kind.LAPPED,
    Kind.AHEAD,
    Kind.EARLY_EXIT,
)


@record
class Blame:
    """A cause, and the fault that it leads to."""

    cause: Mismatch | Gap | OneWay
    fault: Fault


@record
class Verdict:
    """What is wrong with a protocol. Empty `blames` and `faults`: nothing, for every number of k tiles and tiles."""

    protocol: Protocol
    blames: tuple[Blame, ...] = ()
    faults: tuple[Fault, ...] = ()
    """Those that no declared value and no missing structure explains: one a ring."""

    @property
    def ok(self) -> bool:
        return not self.blames and not self.faults


def judge(protocol: Protocol) -> Verdict:
    """Prove a protocol, and trace what is wrong to its causes."""
    faults = prove(protocol)
    if not faults:
        return Verdict(protocol)
    guilty, rest = _guilty(protocol, mismatches(protocol), faults)
    blames = [Blame(m, _consequence(protocol, m, faults)) for m in guilty]
    mended = derive(repair(protocol.spec, guilty)) if guilty else protocol
    left = list(roots(mended, rest))
    for gap in _telling(gaps(mended), one_ways(mended)):
        # Loops that run differently often upset every ring.
        trips = isinstance(gap, Gap) and gap.what is Lack.TRIPS
        explained = [f for f in rest if trips or _ring(mended, f) in (_concerned(gap), "")]
        if explained:
            hang = [f for f in explained if f.kind is Kind.DEADLOCK and trips]
            blames.append(Blame(gap, min(hang or explained, key=_telling_order)))
            left = [f for f in left if f not in explained]
    return Verdict(protocol, tuple(blames), tuple(left))


def roots(protocol: Protocol, faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
    """Return one fault a ring: the others follow from it. A hang is told alone if nothing else went wrong before."""
    best: dict[str, Fault] = {}
    for fault in sorted(faults, key=lambda f: (_RANK.index(f.kind), f.at.tile, f.at.k)):
        best.setdefault(_ring(protocol, fault), fault)
    hang = best.pop("", None)
    if hang is not None and not best:
        return (hang,)
    certain = {
        Kind.READ_EARLY,
        Kind.OVERWRITE,
        Kind.WRITE_WRITE,
        Kind.NOT_VISIBLE,
        Kind.WRONG_DATA,
        Kind.UNINITIALISED,
        Kind.MIXED_ARRIVALS,
    }
    strong = [f for f in best.values() if f.kind in certain]
    if strong:
        # A barrier that is lapped or miscounted in another ring follows from what happens in this one.
        return tuple(strong)
    return (hang,) if hang is not None else tuple(best.values())


def _ring(protocol: Protocol, fault: Fault) -> str:
    """Return which ring a fault is about: stages, accumulators, store buffers, parts of sums; "" for a hang."""
    if fault.kind is Kind.DEADLOCK:
        return ""
    name = fault.place.split("[")[0]
    if name in ("A", "B"):
        return "stages"
    if name in ("acc", "registers"):
        return "accumulators"
    if name == "D":
        return "store buffers"
    if name == "R":
        return "parts"
    return _guarded(protocol.barrier(name))


def _telling_order(fault: Fault) -> tuple[bool, int]:
    """Order faults by how much they tell of their cause: what happens for every K first."""
    return not fault.every, _RANK.index(fault.kind)


def _guarded(plan: BarrierPlan) -> str:
    return "parts" if plan.exchange else "stages" if plan.per_k else "accumulators"


def _concerned(cause: Gap | OneWay) -> str:
    """Return which ring lacks something."""
    return _guarded(cause.plan) if isinstance(cause, Gap) else "stages" if cause.stages else "accumulators"


def _keys(faults: tuple[Fault, ...]) -> set[tuple[Kind, str]]:
    return {(f.kind, f.place.split("[")[0]) for f in faults}


def _guilty(
    protocol: Protocol, wrong: tuple[Mismatch, ...], faults: tuple[Fault, ...]
) -> tuple[tuple[Mismatch, ...], tuple[Fault, ...]]:
    """Return the fewest declarations without which faults go away, and the faults that stay without them.

    A declaration that differs from the derived value may be needed as it is, so not all of them are suspects together.
    """
    best: tuple[tuple[Mismatch, ...], tuple[Fault, ...]] = ((), faults)
    for size in range(1, len(wrong) + 1):
        for chosen in combinations(wrong, size):
            if size > 2 and len(wrong) > 4 and size < len(wrong):
                continue
            rest = prove(derive(repair(protocol.spec, chosen)))
            if not rest:
                return chosen, ()
            if _keys(rest) < _keys(best[1]):
                best = chosen, rest
    return best


def _consequence(protocol: Protocol, wrong: Mismatch, faults: tuple[Fault, ...]) -> Fault:
    ring = _guarded(wrong.plan)
    own = [f for f in faults if _ring(protocol, f) in (ring, "")] or list(faults)
    return min(own, key=_telling_order)


def _telling(found: tuple[Gap, ...], ways: tuple[OneWay, ...]) -> tuple[Gap | OneWay, ...]:
    """Return the causes that tell most: what is missing altogether before what is there in the wrong number."""

    def lacking(what: Lack) -> tuple[Gap, ...]:
        return tuple(g for g in found if g.what is what)

    missing = (*lacking(Lack.ARRIVAL), *lacking(Lack.ROOM), *ways)
    return missing or lacking(Lack.WAIT) or lacking(Lack.TRIPS) or lacking(Lack.SLOTS)
