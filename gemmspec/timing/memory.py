"""What the clusters of one wave ask of L2 and of device memory, and how much of it is there already.

All clusters run in step: a wave is the tiles that they compute at the same time, in the scheduler's order. L2 is
taken to hold whole panels (all k of one tile row of A or tile column of B) and tiles of D, the least recently used
of which go first. Within a wave a panel is fetched once, slice by slice, however large it is. A wave that touches
more than L2 holds leaves nothing behind: what the next one begins with is what this one dropped first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from gemmspec.model.spec import Spec
from gemmspec.protocol.schedule import Tile, tile_order, tiles_of
from gemmspec.protocol.tile import Tiling
from gemmspec.targets.timing import Timing
from gemmspec.vocabulary import Operand

# L2 forgets what is older than this many waves, for all that matters.
REMEMBERED_WAVES = 48

_Key = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Wave:
    """One tile of each cluster that still has one."""

    clusters: int
    misses: dict[Operand, float]
    """The part of the bytes asked for that comes from device memory."""
    cold: dict[Operand, bool]
    """Whether this cluster's panel does: all that share it then wait for the memory."""
    dram_bytes: float
    """Bytes moved from and to device memory."""
    l2_bytes: float
    """Bytes that the SMs ask L2 for."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The sizes and who computes what. `work[c]` are the tiles of the resident cluster c, one after the other."""

    m: int
    n: int
    k: int
    k_tiles: int
    work: tuple[tuple[Tile, ...], ...]

    @property
    def flops(self) -> float:
        """Floating-point operations that are asked for (not those of ragged tiles)."""
        return 2.0 * self.m * self.n * self.k


def problem_of(tiling: Tiling, sizes: tuple[int, int, int], cluster: int, sms: int) -> Problem:
    """Return who computes what. Clusters that find no place at first come after those that are through."""
    m, n, k = sizes
    order = tile_order(tiling.m_tiles(m), tiling.n_tiles(n), tiling.group)
    clusters = tiling.ctas // cluster
    resident = max(min(clusters, sms // cluster, len(order)), 1)
    work = tuple(
        tuple(tile for number in range(place, clusters, resident) for tile in tiles_of(order, number, clusters))
        for place in range(resident)
    )
    return Problem(m, n, k, tiling.k_tiles(k), work)


class _L2:
    """What is in L2: panels and tiles of D by name, the least recently used first."""

    def __init__(self, capacity: float) -> None:
        self._capacity = capacity
        self._held = 0
        self._sizes: OrderedDict[_Key, int] = OrderedDict()

    def touch(self, key: _Key, size: int) -> bool:
        """Say whether it is there, and make it the newest there."""
        there = key in self._sizes
        if there:
            self._sizes.move_to_end(key)
            return True
        self._sizes[key] = size
        self._held += size
        while self._held > self._capacity and len(self._sizes) > 1:
            self._held -= self._sizes.popitem(last=False)[1]
        return False

    def forget_if_over(self, size: int) -> None:
        """Forget all if that much is more than it holds."""
        if size > self._capacity:
            self._sizes.clear()
            self._held = 0


def waves_of(spec: Spec, tiling: Tiling, problem: Problem, timing: Timing, wanted: int) -> tuple[Wave, ...]:
    """Return the first `wanted` waves. L2 starts as an earlier run of the same kernel left it."""
    l2 = _L2(timing.l2_capacity)
    count = max(len(tiles) for tiles in problem.work)
    for number in range(max(count - REMEMBERED_WAVES, 0), count):
        _wave(_tiles(problem, number), spec, tiling, problem, l2)
    return tuple(_wave(_tiles(problem, number), spec, tiling, problem, l2) for number in range(min(wanted, count)))


def _tiles(problem: Problem, number: int) -> list[Tile]:
    return [tiles[number] for tiles in problem.work if number < len(tiles)]


def _wave(tiles: Sequence[Tile], spec: Spec, tiling: Tiling, problem: Problem, l2: _L2) -> Wave:
    depth = problem.k_tiles * tiling.split * tiling.block_k * spec.gemm.a.value.bytes
    sizes = {Operand.A: tiling.tile_m * depth, Operand.B: tiling.tile_n * depth}
    rows, columns = dict.fromkeys(t[0] for t in tiles), dict.fromkeys(t[1] for t in tiles)
    panels = [(Operand.A, row) for row in rows] + [(Operand.B, column) for column in columns]
    missing = [panel for panel in panels if not l2.touch((panel[0].value, panel[1], 0), sizes[panel[0]])]
    missed = {o: sum(sizes[o] for operand, _ in missing if operand is o) for o in sizes}
    written = tiling.tile_m * tiling.tile_n * spec.gemm.d.value.bytes
    for row, column in tiles:
        l2.touch(("D", row, column), written)
    l2.forget_if_over(sum(sizes[operand] for operand, _ in panels) + written * len(tiles))
    # Each CTA that needs a panel asks for it, unless they share it by multicast.
    copies = {
        Operand.A: spec.cluster.n // tiling.a_parts,
        Operand.B: max(spec.cluster.m // tiling.pair // tiling.b_parts, 1),
    }
    asked = {o: sizes[o] * copies[o] * len(tiles) for o in sizes}
    return Wave(
        clusters=len(tiles),
        misses={o: missed[o] / asked[o] for o in sizes},
        cold={Operand.A: (Operand.A, tiles[0][0]) in missing, Operand.B: (Operand.B, tiles[0][1]) in missing},
        dram_bytes=float(sum(missed.values()) + written * len(tiles)),
        l2_bytes=float(sum(asked.values())),
    )
