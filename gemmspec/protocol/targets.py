"""Which CTAs of the cluster an action reaches, as masks of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from gemmspec.model.spec import Cluster
from gemmspec.record import record
from gemmspec.vocabulary import Group


@cache
def _ranks(mask: int) -> tuple[int, ...]:
    return tuple(r for r in range(mask.bit_length()) if mask >> r & 1)


@record
class Targets:
    """For each CTA that acts, the CTAs it acts on, as a bit mask of ranks (bit r is rank r)."""

    masks: tuple[int, ...]

    def of(self, cta: int) -> tuple[int, ...]:
        """Return the ranks that CTA `cta` acts on."""
        return _ranks(self.masks[cta])

    @staticmethod
    def group(group: Group, cluster: Cluster, pair: int) -> Targets:
        """Return the masks of a named group; `pair` is the number of CTAs of one MMA (1 or 2)."""
        size = cluster.size
        ranks = range(size)

        def mask(members: Iterator[int]) -> int:
            return sum(1 << r for r in members)

        def row(c: int) -> int:
            return mask(r for r in ranks if cluster.x(r) == cluster.x(c) and cluster.share(r) == cluster.share(c))

        def column(c: int) -> int:
            return mask(r for r in ranks if cluster.y(r) == cluster.y(c) and cluster.share(r) == cluster.share(c))

        def peers(c: int) -> int:
            return mask(r for r in ranks if r != c and (r - c) % (cluster.m * cluster.n) == 0)

        match group:
            case Group.OWN:
                return Targets(tuple(1 << c for c in ranks))
            case Group.LEADER:
                return Targets(tuple(1 << (c - c % pair) for c in ranks))
            case Group.PAIR:
                return Targets(tuple(((1 << pair) - 1) << (c - c % pair) for c in ranks))
            case Group.ROW:
                return Targets(tuple(row(c) for c in ranks))
            case Group.COLUMN:
                return Targets(tuple(column(c) for c in ranks))
            case Group.CLUSTER:
                return Targets(tuple((1 << size) - 1 for _ in ranks))
            case Group.CROSS:
                return Targets(tuple(row(c) | column(c) for c in ranks))
            case Group.PEERS:
                return Targets(tuple(peers(c) for c in ranks))

    def named(self, cluster: Cluster, pair: int) -> Group | None:
        """Return the smallest named group with these masks, if there is one."""
        for group in Group:
            if Targets.group(group, cluster, pair).masks == self.masks:
                return group
        return None

    def words(self, cluster: Cluster, pair: int) -> str | None:
        """Return the words of a barrier line that mean these masks; None where the language has none."""
        group = self.named(cluster, pair)
        if group is Group.OWN or group is Group.LEADER:
            return f"at {group.value}"
        if group is not None and group is not Group.CROSS:
            return f"multicast {group.value}"
        return f"multicast {self.masks[0]:#b}" if len(set(self.masks)) == 1 else None
