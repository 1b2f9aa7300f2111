"""The k trip counts that the proof runs stand for all: what is clean for them is clean for the longer ones, too.

Each spec is a pipeline whose first, middle and last k tiles release their stage, and keep the producer back, in ways
of their own. Most are wrong, and some for long k loops only, where two middle tiles are a ring apart.
"""

from __future__ import annotations

import random
from itertools import product

import pytest
from strategies import protocol_of

from gemmspec.proof import prove
from gemmspec.proof.depths import Depths
from gemmspec.proof.machine import Machine
from gemmspec.protocol import Protocol

WHEN = ("if k == first { %s }", "if k != first { if k != last { %s } }", "if k != first { if k == last { %s } }")
"""The first, a middle, the last k tile of a tile: each k tile is one of them."""
RELEASES = (("commit empty[stage]", ""), ("arrive empty[stage]", ""), ("", "commit empty[stage]"))
"""What stands ahead of the multiply, and behind it. Only the last waits for it."""
ARRIVALS = ("commit", "arrive")

HEAD = """kernel t
target sm_100a
gemm   D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16
sizes  M = 4096, N = 4096, K = 4096
block  128 x 128 x 64
stages {stages}
role producer  = tma      on warpgroup 1 warp 3
role consumer  = mma      on warpgroup 1 warp 0
role writeback = epilogue on warpgroup 0
barrier full  [stages] producer  -> consumer
barrier empty [stages] consumer  -> producer via commit arrivals 1 phase 1
barrier drain [stages] consumer  -> producer via commit arrivals 1 phase 0
barrier ready [1]      consumer  -> writeback
barrier free  [1]      writeback -> consumer
program producer {{
  for tile {{
    for k {{
      wait empty[stage]
{before}
      load A B full[stage]
      expect full[stage] 32768
{behind}
    }}
  }}
}}
program consumer {{
  for tile {{
    wait free[0]
    for k {{
{drained}
      wait full[stage]
{early}
      mma
{late}
    }}
    commit ready[0]
  }}
}}
"""


def spec(stages: int, releases: tuple[int, ...], held: tuple[bool, ...], drains: tuple[str, ...]) -> Protocol:
    """Return a pipeline. For each kind of k tile: how it releases, whether it waits ahead of its load, for what."""

    def lines(*texts: str) -> str:
        return "\n".join(when % text for when, text in zip(WHEN, texts, strict=True) if text)

    text = HEAD.format(
        stages=stages,
        before=lines(*("wait drain[stage]" if h else "" for h in held)),
        behind=lines(*("" if h else "wait drain[stage]" for h in held)),
        drained=lines(*(f"{d} drain[stage]" for d in drains)),
        early=lines(*(RELEASES[r][0] for r in releases)),
        late=lines(*(RELEASES[r][1] for r in releases)),
    )
    # One statement a line: `if` and its braces hold one each.
    text = text.replace("{ ", "{\n").replace(" }", "\n}")
    protocol = protocol_of(text)
    assert protocol is not None
    return protocol


def wrong_at(protocol: Protocol, k_tiles: int) -> bool:
    """Say whether a number of k tiles, which the proof may never try, shows a fault."""
    return bool(Machine(protocol, Depths.of(protocol).trips(k_tiles)).run())


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_longer_k_loops_are_no_worse(stages: int) -> None:
    ways = list(product(product(range(3), repeat=3), product((False, True), repeat=3), product(ARRIVALS, repeat=3)))
    for chosen in random.Random(stages).sample(ways, 60):
        protocol = spec(stages, *chosen)
        last = Depths.of(protocol).k_counts[-1]
        if any(wrong_at(protocol, k) for k in range(last + 1, last + stages + 3)):
            assert prove(protocol), (stages, chosen)


@pytest.mark.parametrize("stages", [2, 3])
def test_two_middle_tiles_a_ring_apart_are_met(stages: int) -> None:
    protocol = spec(stages, (2, 1, 2), (False, False, True), ("arrive", "arrive", "commit"))
    last = Depths.of(protocol).k_counts[-1]
    assert {k for fault in prove(protocol) for k in fault.k_tiles} == {last} == {stages + 3}
