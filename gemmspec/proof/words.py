"""Faults in the user's words: who, where, when, and what it means on a GPU."""

from __future__ import annotations

from gemmspec.model.spec import Spec
from gemmspec.proof.fault import At, Blocked, Fault, Kind
from gemmspec.protocol import Protocol
from gemmspec.protocol.memory import tmem_map
from gemmspec.protocol.tile import Tiling


def who(spec: Spec, at: At) -> str:
    """Return `consumer` 1 of CTA 0, as short as it stays unambiguous."""
    instance = f" {at.instance}" if spec.role(at.role).instances > 1 else ""
    cta = f" of CTA {at.cta}" if spec.cluster.size > 1 else ""
    return f"`{at.role}`{instance}{cta}"


def when(at: At) -> str:
    """Return the tile and k tile of an action, both counted from 0."""
    return f"tile {at.tile}, k tile {at.k}"


def where(protocol: Protocol, place: str) -> str:
    """Return a place of memory or a barrier in words."""
    name, _, rest = place.partition("[")
    spec, tiling = protocol.spec, Tiling.of(protocol.spec)
    slot = int(rest.rstrip("]")) if rest else None
    if slot is None:
        return {
            "D": "the store buffers",
            "R": "the receive buffers",
            "acc": "the accumulator",
            "registers": "the registers",
        }.get(name, f"`{name}`")
    if name == "A":
        stage, consumer = divmod(slot, tiling.consumers)
        return f"stage {stage} of A" + (f" for consumer {consumer}" if tiling.consumers > 1 else "")
    if name == "B":
        return f"stage {slot} of B"
    if name == "acc":
        return _accumulator(spec, tiling, slot)
    if name == "D":
        return f"store buffer {slot}"
    if name == "R":
        consumer, part = divmod(slot, max(tiling.split - 1, 1))
        return f"receive buffer {part}" + (f" of consumer {consumer}" if tiling.consumers > 1 else "")
    return f"`{place}`"


def _accumulator(spec: Spec, tiling: Tiling, slot: int) -> str:
    owner, index = divmod(slot, tiling.accumulators)
    regions = tmem_map(spec)
    if not regions or owner >= len(regions):
        return f"the accumulator of consumer {owner}"
    first = regions[owner].offset + index * tiling.acc_columns
    return f"TMEM columns {first}..{first + tiling.acc_columns - 1}"


_DOING = {
    "load": "loads",
    "mma": "multiplies",
    "read": "reads the accumulator",
    "send": "sends its part of the sum",
    "add": "adds the parts of the sum",
    "store": "stores",
    "retire": "retires",
}


def doing(at: At) -> str:
    """Return what an action does, third person."""
    verb, _, rest = at.action.partition(" ")
    if verb in ("wait", "arrive", "commit", "expect"):
        return {"wait": "waits for", "arrive": "arrives on", "commit": "commits to", "expect": "arrives on"}[
            verb
        ] + f" `{rest}`"
    return _DOING.get(verb, at.action) + (f" {rest}" if rest else "")


def effect(protocol: Protocol, fault: Fault) -> str:
    """Return one sentence on what can happen, without a final period."""
    spec = protocol.spec
    actor = who(spec, fault.at)
    other = who(spec, fault.other) if fault.other else ""
    place = where(protocol, fault.place)
    match fault.kind:
        case Kind.DEADLOCK:
            return f"the kernel hangs: {hang(protocol, fault)}"
        case Kind.READ_EARLY:
            if not other:
                return f"{actor} reads {place}, which nothing has written yet: the tile is garbage"
            return f"{actor} may read {place} before what {other} puts there is complete: the tile is garbage"
        case Kind.OVERWRITE:
            return f"{actor} may overwrite {place} while {other} still reads it: the tile is garbage"
        case Kind.WRITE_WRITE:
            return f"{actor} and {other} may write {place} at the same time: the tile is garbage"
        case Kind.WRONG_DATA if fault.detail == "chunks missing":
            return "a part of D keeps what it held before"
        case Kind.WRONG_DATA if fault.detail == "stored twice":
            return "one chunk is stored for nothing, or another one is missing"
        case Kind.WRONG_DATA if fault.detail == "rows of another consumer":
            return "the sums end up in the wrong rows of D"
        case Kind.WRONG_DATA if fault.detail == "rows of another CTA":
            return f"{actor} puts its own rows into {place} of a CTA that multiplies others: the tile is garbage"
        case Kind.WRONG_DATA if fault.detail == "part of the sum":
            return (
                f"{actor} stores the sum over the k tiles of one CTA, without those of its peers: the tile is garbage"
            )
        case Kind.WRONG_DATA:
            return f"{actor} finds in {place} the data of another tile, k tile or chunk: the tile is garbage"
        case Kind.NOT_VISIBLE if fault.detail == "one thread for all":
            return f"nothing orders one thread of {actor} behind the reads of the others: garbage now and then"
        case Kind.NOT_VISIBLE:
            return f"what {other or actor} did with {place} need not be visible to {actor} yet: garbage now and then"
        case Kind.LAPPED:
            return f"{place} may complete two phases while {actor} looks at one parity: a hang, or garbage"
        case Kind.AHEAD:
            return f"{actor} may look at {place} a phase too early, when the parity of the phase before lets it pass"
        case Kind.MIXED_ARRIVALS if fault.detail == "too many bytes":
            return f"{place} is to wait for more bytes in one phase than an mbarrier counts: undefined"
        case Kind.MIXED_ARRIVALS:
            phase = f"the phase of {other}" if other and other != actor else "the phase before its own"
            return f"an arrival of {actor} on {place} may be counted in {phase}: the barrier opens too early"
        case Kind.EARLY_EXIT:
            return (
                f"a CTA may end while what {actor} started on {place} is in flight: a fault, or a next kernel's garbage"
            )
        case Kind.UNINITIALISED if fault.detail:
            return f"{actor} reaches {place} in a CTA that the cluster does not have: an illegal address"
        case Kind.UNINITIALISED:
            return f"{actor} may reach {place} in a CTA that has not initialised it yet: a lost arrival, and a hang"


def hang(protocol: Protocol, fault: Fault) -> str:
    """Return who waits for whom."""
    loop = cycle(fault)
    if not loop:
        return f"{who(protocol.spec, fault.at)} waits for {where(protocol, fault.place)} for good"
    waits = [f"{who(protocol.spec, b.at)} waits for `{b.barrier}[{b.slot}]`" for b in loop]
    return " and ".join(waits) if len(waits) < 3 else ", ".join(waits[:-1]) + " and " + waits[-1]


def cycle(fault: Fault) -> tuple[Blocked, ...]:
    """Return the agents of a deadlock that wait for each other in a ring, or the one that nobody will wake."""
    blocked = {(b.at.role, b.at.instance, b.at.cta): b for b in fault.cycle}
    if not blocked:
        return ()
    # Start where the chain of waits leads to: following it from anywhere ends in the cycle, or at one nobody wakes.
    path: list[tuple[str, int, int]] = [next(iter(blocked))]
    while True:
        here = blocked[path[-1]]
        # A phase that some have arrived for lacks the arrivals of those that are furthest behind.
        late = [a for a in here.lacking if (a.role, a.instance, a.cta) in blocked]
        least = min(((a.tile, a.k) for a in late), default=None)
        ahead = [(a.role, a.instance, a.cta) for a in late if (a.tile, a.k) == least]
        if not ahead:
            return (here,)
        step = next((key for key in ahead if key in path), ahead[0])
        if step in path:
            return tuple(blocked[key] for key in path[path.index(step) :])
        path.append(step)


def lack(spec: Spec, b: Blocked) -> str:
    """Return what the phase that is waited for still lacks."""
    parts: list[str] = []
    if b.pending:
        parts.append(f"{b.pending} arrival{'s' if b.pending > 1 else ''}")
    if b.bytes > 0:
        parts.append(f"{b.bytes:,} bytes")
    if b.bytes < 0:
        parts.append(f"{-b.bytes:,} bytes too many landed")
    return " and ".join(parts) or "its next phase"


def for_which_k(fault: Fault) -> str:
    """Return for which numbers of k tiles a fault was seen."""
    ks = fault.k_tiles
    if fault.every or not ks:
        return "for every K"
    if ks == tuple(range(ks[0], ks[-1] + 1)):
        if fault.onward:
            return f"for every K of {ks[0]} k tiles or more"
        if len(ks) > 1 and ks[0] == 1:
            return f"for every K of up to {ks[-1]} k tiles"
    more = " or more" if fault.onward else ""
    return "when K is " + " or ".join(map(str, ks)) + (" k tile" if ks == (1,) else " k tiles") + more
