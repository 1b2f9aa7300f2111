"""The order in which persistent clusters take output tiles.

The same order as `ClusterPersistentScheduler2D` of apache-tvm (tvm/backend/cuda/lang/tile_scheduler.py), which the
generated kernel uses, with `l2_group_size` = group and whole cluster tiles as its unit: in groups of `group` tile
rows, and down the rows before across the columns within a group, so that clusters that run together share operands
in L2. The last group has the rows that are left.
"""

from __future__ import annotations

from collections.abc import Sequence

Tile = tuple[int, int]
"""Tile row (along M) and tile column (along N)."""


def tile_order(m_tiles: int, n_tiles: int, group: int) -> tuple[Tile, ...]:
    """Return all output tiles in the order of the scheduler's work index."""
    return tuple(
        (row, column)
        for first in range(0, m_tiles, group)
        for column in range(n_tiles)
        for row in range(first, min(first + group, m_tiles))
    )


def tiles_of(order: Sequence[Tile], cluster: int, clusters: int) -> tuple[Tile, ...]:
    """Return the tiles of one of `clusters` persistent clusters: it starts at its own number and strides by all."""
    return tuple(order[cluster::clusters])
