"""Reads what the waits of a debug build wrote down before they gave up.

Given the table of a manifest and the words of the kernel's array, return who waits for what, and what has arrived so
far. Programs are deterministic, and each record says how many waits its instance had passed: what the instance had
arrived on by then is counted along its program. No barrier's memory is read: PTX keeps its layout to itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

HEAD, WORDS = 8, 8
"""32-bit words ahead of the records, and of each."""


@dataclass(frozen=True, slots=True)
class Site:
    """A wait in the spec: line and column from 1, and the text of its line."""

    role: str
    barrier: str
    line: int
    column: int
    length: int
    text: str


@dataclass(frozen=True, slots=True)
class Role:
    """A role: `row` is that of its first instance, `ctas` the ranks where it runs. `body`: its program."""

    name: str
    row: int
    instances: int
    ctas: tuple[int, ...]
    depths: tuple[int, ...]
    body: list[Any]


@dataclass(frozen=True, slots=True)
class Waits:
    """What a debug build writes down. `tile`: rows, columns and depth of a cluster's tile.

    `arrivals`, `sources`: by barrier, how many complete a phase, and the roles that make them.
    """

    seconds: float
    records: str
    rows: int
    spec: str
    cluster: int
    clusters: int
    tile: tuple[int, int, int]
    arrivals: Mapping[str, int]
    sources: Mapping[str, tuple[str, ...]]
    roles: tuple[Role, ...]
    sites: tuple[Site, ...]

    @property
    def bytes(self) -> int:
        """The size of the array."""
        return 4 * (HEAD + self.clusters * self.cluster * self.rows * WORDS)


@dataclass(frozen=True, slots=True)
class At:
    """An instance of a role in a CTA of the cluster, by rank."""

    role: str
    instance: int
    cta: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """A wait that gave up: for completion `phase` of `barrier[slot]`, in `tile` and `k`, counted from 0.

    `completed`: the phases that were over. `pending` of `needed` arrivals and `bytes` (negative: too many landed) are
    what the current one lacks, counted from where the roles stand. `expired`: its own time was over, and not another's.
    `agrees`: the barrier's parity is that of the count; where it is not, arrivals or bytes were lost or miscounted.
    """

    at: At
    site: Site
    barrier: str
    slot: int
    parity: int
    tile: int
    k: int
    phase: int
    completed: int
    pending: int
    needed: int
    bytes: int
    seconds: float
    expired: bool
    agrees: bool
    lacking: tuple[At, ...]
    """Who would arrive, and has not ended."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a kernel stopped. `cluster` is the first one in which a wait expired, `waits` all that gave up there.

    `cycle`: those that wait for each other in a ring, or the one that nobody will wake. `clusters`: in how many a wait
    expired. `ended`: the instances that had come to their end.
    """

    cluster: int
    waits: tuple[Waiting, ...]
    cycle: tuple[Waiting, ...]
    clusters: int
    ended: tuple[At, ...]


def waits_of(data: Mapping[str, Any]) -> Waits:
    """Return the table in a manifest. Raises KeyError, TypeError or ValueError where it is none."""
    rows, columns, depth = map(int, data["tile"])
    return Waits(
        seconds=float(data["seconds"]),
        records=str(data["records"]),
        rows=int(data["rows"]),
        spec=str(data["spec"]),
        cluster=int(data["cluster"]),
        clusters=int(data["clusters"]),
        tile=(rows, columns, depth),
        arrivals={b["name"]: int(b["arrivals"]) for b in data["barriers"]},
        sources={b["name"]: tuple(b["sources"]) for b in data["barriers"]},
        roles=tuple(
            Role(r["name"], r["row"], r["instances"], tuple(r["ctas"]), tuple(r["depths"]), json.loads(r["body"]))
            for r in data["roles"]
        ),
        sites=tuple(Site(**site) for site in data["sites"]),
    )


def stop_of(waits: Waits, words: Sequence[int], sizes: Sequence[int]) -> Stop | None:
    """Return why a kernel stopped; None where no wait gave up. `sizes`: M, N and K of the launch."""
    per_cluster = waits.cluster * waits.rows * WORDS
    expired = [
        c
        for c in range(waits.clusters)
        if any(words[HEAD + c * per_cluster + i] == 1 for i in range(0, per_cluster, WORDS))
    ]
    if not expired:
        return None
    cluster = expired[0]
    records = words[HEAD + cluster * per_cluster : HEAD + (cluster + 1) * per_cluster]
    m, n, k = sizes
    tile_m, tile_n, tile_k = waits.tile
    tiles = -(-m // tile_m) * -(-n // tile_n)
    trips = {"tile": max(-(-(tiles - cluster) // waits.clusters), 0), "k": -(-k // tile_k)}
    cells: dict[tuple[str, int, int], _Cell] = {}
    stuck: list[tuple[At, _Instance, Sequence[int]]] = []
    ended: list[At] = []
    for role in waits.roles:
        for cta in role.ctas:
            for number in range(role.instances):
                start = (cta * waits.rows + role.row + number) * WORDS
                record = records[start : start + WORDS]
                instance = _Instance(role, number, cta, trips, record[6] if record[0] else None, cells)
                instance.run()
                at = At(role.name, number, cta)
                if record[0]:
                    stuck.append((at, instance, record))
                else:
                    ended.append(at)
    found = tuple(_waiting(waits, at, instance, record, cells, stuck) for at, instance, record in stuck)
    return Stop(cluster, found, _cycle(found), len(expired), tuple(ended))


@dataclass(slots=True)
class _Cell:
    """What has been done so far to the barrier of one slot in one CTA."""

    arrived: int = 0
    expected: int = 0
    landed: int = 0


class _Stopped(Exception):
    """The instance is at the wait that gave up."""


@dataclass(slots=True)
class _Instance:
    """One instance of a role, followed along its program until it has passed `passes` waits (None: to its end)."""

    role: Role
    number: int
    cta: int
    trips: Mapping[str, int]
    passes: int | None
    cells: dict[tuple[str, int, int], _Cell]
    counts: list[int] = field(init=False)
    stands: tuple[str, int, int, int] | None = None
    """The wait that it stands at: site as a number in `stands[3]`, behind barrier, slot and phase."""

    def __post_init__(self) -> None:
        self.counts = [0] * len(self.role.depths)

    def run(self) -> None:
        """Follow the program."""
        try:
            self._body(self.role.body, {})
        except _Stopped:
            return

    def _body(self, body: list[Any], inside: dict[str, tuple[int, int]]) -> None:
        for statement in body:
            match statement:
                case ["for", kind, count, offset, advances, inner]:
                    n = max((self.trips.get(kind) if count is None else count or 0) + offset, 0)
                    for i in range(n):
                        self._body(inner, {**inside, kind: (i, n)})
                        for cursor in advances:
                            self.counts[cursor] += 1
                case ["if", kind, which, equal, inner]:
                    i, n = inside.get(kind, (0, 1))
                    if (i == (0 if which == "first" else n - 1)) == equal:
                        self._body(inner, inside)
                case ["wait", barrier, slot, phase, site]:
                    if self.passes == 0:
                        self.stands = (barrier, self._slot(slot), self._wraps(slot) + 1 - phase, site)
                        raise _Stopped
                    if self.passes is not None:
                        self.passes -= 1
                case ["arrive", barrier, slot, arrivals, expected, targets]:
                    for cell in self._reached(barrier, slot, targets):
                        cell.arrived += arrivals
                        cell.expected += expected
                case ["land", barrier, slot, size, targets]:
                    for cell in self._reached(barrier, slot, targets):
                        cell.landed += size
                case _:
                    raise ValueError(f"a statement of an unknown kind: {statement}")

    def _slot(self, slot: Sequence[int]) -> int:
        const, own, stride, cursor, lag = slot
        fixed = const + own * self.number
        if cursor < 0 or not stride:
            return fixed
        return fixed + stride * ((self.counts[cursor] - lag) % self.role.depths[cursor])

    def _wraps(self, slot: Sequence[int]) -> int:
        cursor, lag = slot[3], slot[4]
        return 0 if cursor < 0 else (self.counts[cursor] - lag) // self.role.depths[cursor]

    def _reached(self, barrier: str, slot: Sequence[int], targets: Sequence[Sequence[int]]) -> Iterator[_Cell]:
        number = self._slot(slot)
        for cta in targets[self.cta]:
            yield self.cells.setdefault((barrier, number, cta), _Cell())


def _waiting(
    waits: Waits,
    at: At,
    instance: _Instance,
    record: Sequence[int],
    cells: Mapping[tuple[str, int, int], _Cell],
    stuck: Sequence[tuple[At, _Instance, Sequence[int]]],
) -> Waiting:
    state, number, slot, parity, tile, k, _, micros = record
    site = waits.sites[number]
    needed = waits.arrivals[site.barrier]
    cell = cells.get((site.barrier, slot, at.cta), _Cell())
    completed, left = divmod(cell.arrived, needed)
    lack = cell.expected - cell.landed
    pending = needed - left
    if completed and not left and lack:
        # All have arrived, and the bytes do not come to what was announced: the phase is still that one.
        completed, pending = completed - 1, 0
    counted = instance.stands
    phase = counted[2] if counted else 0
    # A wait for a parity fails as long as the phase of that parity is the current one.
    agrees = counted is not None and counted[1] == slot and counted[3] == number and (completed - parity) % 2 == 0
    sources = waits.sources[site.barrier]
    lacking = tuple(
        a
        for a, source, _ in stuck
        if a.role in sources and a != at and at.cta in (_reach(source.role.body, site.barrier, a.cta) or (at.cta,))
    )
    return Waiting(
        at, site, site.barrier, slot, parity, tile, k, phase, completed, pending, needed, lack, micros / 1e6,
        state == 1, agrees, lacking,
    )  # fmt: skip


def _reach(body: Sequence[Any], barrier: str, cta: int) -> set[int]:
    """Return the CTAs whose barrier a program signals from that CTA; none where it never does."""
    found: set[int] = set()
    for statement in body:
        match statement:
            case ["for", _, _, _, _, inner] | ["if", _, _, _, inner]:
                found |= _reach(inner, barrier, cta)
            case ["arrive" | "land", name, *_, targets] if name == barrier:
                found.update(targets[cta])
            case _:
                pass
    return found


def _cycle(found: Sequence[Waiting]) -> tuple[Waiting, ...]:
    """Return those that wait for each other in a ring, or the one that nobody will wake.

    Followed from the first; each waits for those of the barrier's sources that have not ended, and are furthest behind:
    a phase that some have arrived for lacks the arrivals of those.
    """
    blocked = {w.at: w for w in found}
    if not blocked:
        return ()
    path = [next(iter(blocked))]
    while True:
        late = [a for a in blocked[path[-1]].lacking if a in blocked]
        least = min(((blocked[a].tile, blocked[a].k) for a in late), default=None)
        ahead = [a for a in late if (blocked[a].tile, blocked[a].k) == least]
        if not ahead:
            return (blocked[path[-1]],)
        step = next((a for a in ahead if a in path), ahead[0])
        if step in path:
            return tuple(blocked[a] for a in path[path.index(step) :])
        path.append(step)
