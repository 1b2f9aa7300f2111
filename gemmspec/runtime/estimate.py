"""How long a kernel takes, roughly: what selection goes by where nothing was measured.

A model of six rates a target. It ranks kernels, and is no prediction of a time: see docs/tuning.md, which says how far
off its ranking is. `gemmspec.timing` replays a pipeline, and needs the compiler.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gemmspec.runtime.arithmetic import value
from gemmspec.runtime.manifest import ITEM_BYTES, Manifest

Shape = tuple[int, int, int]
_LINE_BYTES = 128


@dataclass(frozen=True, slots=True)
class Rates:
    """What a multiprocessor does in a cycle, and the cycles that a kernel, a tile and a k step cost beside that."""

    multiply_adds: float
    """Of 16-bit operands, by the tensor cores at full clock."""
    held: float
    """The part of them that the power limit lets all multiprocessors hold."""
    a_bytes: float
    b_bytes: float
    """Bytes of A and of B that arrive in shared memory."""
    stored: float
    """Elements of D that an epilogue writes."""
    kernel: float
    cluster: float
    """What a kernel of clusters costs more: its syncs, and what it waits for its peers."""
    tile: float
    step: float


# sm_90a: full rate by NVIDIA's figure of 989 TFLOP/s for 132 multiprocessors at 1.83 GHz; the others fitted to 68
# kernels on 12 shapes, measured on an H200. sm_100a: full rate by 2.25 PFLOP/s for 148; the others scaled from that,
# and not measured.
RATES = {
    "sm_90a": Rates(2048, 0.9, 99, 120, 11, kernel=2400, cluster=500, tile=700, step=24),
    "sm_100a": Rates(4096, 0.9, 198, 240, 22, kernel=2400, cluster=500, tile=700, step=24),
}


def cycles(manifest: Manifest, shape: Shape, sms: int) -> float:
    """Return about how many cycles a kernel takes on a card of so many multiprocessors.

    Infinite where the manifest does not say what a tile is.
    """
    tile = manifest.tile
    if tile is None:
        return math.inf
    rates = RATES.get(manifest.target, RATES["sm_90a"])
    m, n, k = (max(size, 1) for size in shape)
    ctas = math.prod(manifest.cluster)
    tiles = -(-m // tile.m) * -(-n // tile.n)
    steps = -(-k // tile.k)
    item = ITEM_BYTES[manifest.tensors[0].dtype]
    multiply = tile.m * tile.n * tile.k / ctas / (rates.multiply_adds * 2 / item)
    load = tile.k * item * (tile.a_rows / rates.a_bytes + tile.b_rows / rates.b_bytes)
    if k * item % _LINE_BYTES:
        load *= 2.5  # rows begin inside of lines: each is fetched by two, and by parts
    of_tile = steps * (max(multiply, load) + rates.step) + rates.tile + tile.m * tile.n / ctas / rates.stored
    path = _waves(manifest, (m, n, k), tiles, ctas, sms) * of_tile + rates.kernel + (rates.cluster if ctas > 1 else 0)
    power = tiles * ctas * steps * multiply / sms / rates.held
    return max(path, power)


def _waves(manifest: Manifest, shape: Shape, tiles: int, ctas: int, sms: int) -> int:
    """Return how many tiles the slowest place for a cluster computes."""
    sizes = dict(zip(manifest.sizes, shape, strict=True))
    asked = math.prod(value(number, sizes) for number in manifest.grid) // ctas
    clusters = max(min(asked, tiles), 1)
    # A cluster lies in one GPC of 16 or 18 multiprocessors, so one of 4 or more leaves two of 18 idle.
    places = max((sms if ctas <= 2 else sms * 16 // 18) // ctas, 1)
    return -(-tiles // clusters) * -(-clusters // places)
