"""A mutant run on numbers: small problems under many schedules, until one shows a fault."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gemmspec.protocol import Protocol
from gemmspec.protocol.tile import Tiling
from gemmspec.simulate import Outcome, Problem, prepare, simulate

RIGHT, CRASH = "right", "crash"
SEEDS = 16
"""Schedules of a mutant: each of the four sizes under four."""
LONG = 140
"""Tiles of one more run where counts were changed: an arrival too many in each tile is not felt until those of a
whole warpgroup (128) have added up."""


@dataclass(frozen=True)
class Size:
    """k tiles, rows and columns of output tiles, and how many clusters take them in turn."""

    k: int
    rows: int
    columns: int
    clusters: int = 1

    def __str__(self) -> str:
        return f"K {self.k}, {self.rows * self.columns} tiles, {self.clusters} clusters"


def sizes_of(protocol: Protocol) -> tuple[Size, ...]:
    """Return sizes past two wraps of the deepest ring, K of one tile, and a cluster without a tile."""
    stages, accumulators = protocol.spec.stages.value, protocol.spec.accumulators.value
    deepest = max([stages, *(c.depth for p in protocol.programs for c in p.cursors)])
    return (
        Size(stages + 1, 3, 1),
        Size(1, 2 * accumulators + 3, 1),
        Size(2 * deepest + 1, 1, 2),
        Size(1, 1, 1, clusters=2),
    )


def runs(protocol: Protocol, seeds: int) -> Iterator[tuple[Size, int]]:
    """Yield sizes in turn, each with a seed."""
    sizes = sizes_of(protocol)
    for seed in range(seeds):
        yield sizes[seed % len(sizes)], seed


def run(protocol: Protocol, size: Size, seed: int) -> Outcome:
    """Run a mutant once. The operands are those of every mutant of that size."""
    spec, tiling = protocol.spec, Tiling.of(protocol.spec)
    numbers = {
        spec.sizes[0].name: size.rows * tiling.tile_m,
        spec.sizes[1].name: size.columns * tiling.tile_n,
        spec.sizes[2].name: size.k * tiling.block_k,
    }
    problem = _problem(protocol, tuple(numbers.values()))
    return simulate(protocol, numbers, seed, ctas=size.clusters * spec.cluster.size, problem=problem)


_problems: dict[tuple[int, ...], Problem] = {}


def _problem(protocol: Protocol, mnk: tuple[int, ...]) -> Problem:
    if mnk not in _problems:
        names = (size.name for size in protocol.spec.sizes)
        _problems[mnk] = prepare(protocol.spec, dict(zip(names, mnk, strict=True)))
    return _problems[mnk]


def shows(outcome: Outcome) -> str:
    """Return how an outcome is wrong: what stopped a cluster, NaN, or wrong numbers; `right` where it is not."""
    stopped = [f.kind for f in outcome.faults if f.kind != "hazard"]
    if stopped:
        return stopped[0]
    if outcome.faults:
        return "hazard"
    return "wrong numbers" if outcome.wrong else RIGHT


def simulated(protocol: Protocol, miscounted: bool) -> str:
    """Return `right`, `crash`, or what the first schedule that goes wrong shows, and at which size and seed."""
    tried = [*runs(protocol, SEEDS), *([(Size(1, LONG, 1), 0)] if miscounted else [])]
    for size, seed in tried:
        try:
            seen = shows(run(protocol, size, seed))
        except Exception as error:
            return f"{CRASH} ({error!r}, {size}, seed {seed})"
        if seen != RIGHT:
            return f"{seen} ({size}, seed {seed})"
    return RIGHT
