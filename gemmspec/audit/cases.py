"""For which sizes, clusters and trip counts kernel and Protocol are compared.

Fixed sizes: the kernel's own. Sizes known at run time: k loops of one, two, and more trips than there are stages. In
each, the cluster with the most tiles, the ones that end with the last tile, and one that has none. The kernel derives a
cluster's tiles from its number alone, so a number beyond the grid's starts at any tile of the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import lcm

from gemmspec.model.spec import Size
from gemmspec.protocol.program import Loop, Program, Protocol
from gemmspec.protocol.schedule import Tile
from gemmspec.protocol.tile import Tiling
from gemmspec.vocabulary import LoopKind

FEW, LAST = 2, 2
"""Trips at the start and the end of a long loop that are always followed."""

RAGGED = 8
"""Elements of a last tile that is not full: the least that TMA strides allow."""

Sampling = Callable[[int], Iterator[int]]


@dataclass(frozen=True, eq=False)
class Case:
    """One run of one cluster: `tiles` is how many rounds of the tile loop are followed."""

    m: int
    n: int
    k: int
    cluster: int
    tiles: int
    m_tiles: int
    n_tiles: int
    group: int
    clusters: int

    @property
    def rounds(self) -> int:
        """How many tiles the cluster takes in all."""
        return max(-(-(self.m_tiles * self.n_tiles - self.cluster) // self.clusters), 0)

    @cached_property
    def taken(self) -> tuple[Tile, ...]:
        """The tiles that are followed."""
        followed = range(min(self.rounds, self.tiles))
        return tuple(
            tile_at(self.cluster + i * self.clusters, self.m_tiles, self.n_tiles, self.group) for i in followed
        )

    @property
    def text(self) -> str:
        """The case in words."""
        return f"M = {self.m}, N = {self.n}, K = {self.k}, tiles {self.cluster} onward"


def tile_at(index: int, m_tiles: int, n_tiles: int, group: int) -> Tile:
    """Return the tile of a work index, as `protocol.schedule.tile_order` has it, without listing all."""
    first = index // (group * n_tiles) * group
    column, row = divmod(index - first * n_tiles, min(group, m_tiles - first))
    return first + row, column


def cases_of(protocol: Protocol) -> tuple[Case, ...]:
    """Return the cases that stand for all."""
    return tuple(_cases(protocol))


def _cases(protocol: Protocol) -> Iterator[Case]:
    t = Tiling.of(protocol.spec)
    m_size, n_size, k_size = protocol.spec.sizes
    clusters = t.ctas // protocol.spec.cluster.size
    rounds = 2 * t.accumulators + 1
    m_tiles = 2 * t.group + 1
    n_tiles = -(-((rounds - 1) * clusters + 1) // m_tiles)
    m, n = _chosen(m_size, m_tiles, t.tile_m), _chosen(n_size, n_tiles, t.tile_n)
    total = t.m_tiles(m) * t.n_tiles(n)
    ks = dict.fromkeys(_chosen(k_size, tiles, t.block_k * t.split) for tiles in (2 * t.stages + 1, 1, 2))
    for i, k in enumerate(ks):
        starts = [(0, rounds)]
        if i == 0:
            last = (total - 1 - clusters, 3) if total > clusters + 1 else (total - 1, 2)
            starts += [last, (total, 1)] if last[0] else [(total, 1)]
        for start, tiles in starts:
            yield Case(m, n, k, start, tiles, t.m_tiles(m), t.n_tiles(n), t.group, clusters)


def _chosen(size: Size, tiles: int, tile: int) -> int:
    """Return a size of so many tiles, the last of them ragged, as far as the spec lets it be."""
    return size.fixed if size.fixed is not None else min(max((tiles - 1) * tile + RAGGED, size.low), size.high)


def sampling(program: Program | None, first: bool) -> Sampling:
    """Return which trips of a long k loop a program's warps are followed through: its first ones and its last ones.

    What is left out is a multiple of the trips after which every ring of the program is as before, and both sides
    leave out the same. In the first case, the first tile goes through all of a ring's states.
    """
    period = lcm(*(2 * c.depth for c in program.cursors)) if program else 1
    counted = (LoopKind.K, LoopKind.FIXED)
    loops = sum(isinstance(s, Loop) and s.kind in counted for s in program.walk()) if program and first else 0
    whole = [period + 1] * loops

    def trips(count: int) -> Iterator[int]:
        head = whole.pop() if whole else FEW
        left_out = max(count - head - LAST, 0) // period * period
        yield from range(count - left_out - LAST if left_out else count)
        if left_out:
            yield from range(count - LAST, count)

    return trips
