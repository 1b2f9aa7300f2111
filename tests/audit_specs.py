"""Specs whose kernels the audit must find right."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SPECS = Path(__file__).parent.parent / "specs"
V7, V8, V9 = ((SPECS / f"v{n}.gemmspec").read_text() for n in (7, 8, 9))
HOPPER = """\
kernel hopper
target sm_90a

gemm     D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16 accumulate f32
sizes    M = 4096, N = 4096, K = 4096
cluster  1 x 1
block    64 x 256 x 64
stages   4
schedule persistent ctas 132 group 8

role producer = tma on warpgroup 0 warp 0 registers 40
role math = mma, epilogue on warpgroups 1..2 registers 232 chunk 64

barrier full  [stages] producer -> math
barrier empty [stages] math -> producer
"""
DYNAMIC = ("M = 4096, N = 4096, K = 4096", "M = 4096 dynamic, N = 4096 dynamic, K = 4096 dynamic")
EARLY = """
program writeback {
  for tile {
    wait mma2ld[self]
    for chunk {
      read
      if chunk == last { arrive ld2mma[self] }
      store
    }
  }
}
"""
SYNCS = """
program writeback {
  for tile {
    wait mma2ld[0]
    for chunk {
      read
      arrive ld2mma[0]
      for 3 { sync warpgroup }
      store
    }
  }
}
"""
LATE = """
program consumer {
  for tile {
    wait ld2mma[0]
    for k {
      wait tma2mma[stage]
      mma
      if k != first { commit mma2tma[stage - 1] }
    }
    commit mma2tma[stage - 1]
    commit mma2ld[0]
  }
}
"""


def derived(text: str) -> str:
    """Return a spec with everything about its barriers left to be derived."""
    lines = text.splitlines()
    return "\n".join(line.split("  via")[0] if line.startswith("barrier") else line for line in lines) + "\n"


def edit(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


D8, D9 = derived(V8), derived(V9)
DYNAMIC9 = edit(V9, DYNAMIC)
NARROW = edit(V9, ("chunk 64", "chunk 32"))
TWO_HIGH = edit(HOPPER, ("64 x 256 x 64", "128 x 128 x 64"), ("chunk 64", "chunk 32"))
UNEVEN = edit(HOPPER, DYNAMIC, ("64 x 256 x 64", "64 x 152 x 64"), ("chunk 64", "chunk 40"))
ALIKE: Mapping[str, str] = {
    "v7": V7,
    "v8": V8,
    "v9": V9,
    "bf16": edit(V9, (" f16", " bf16")),
    "f32 output": edit(V9, ("D[M, N] f16", "D[M, N] f32"), ("chunk 64", "chunk 32")),
    "f32 output, two atoms a row": edit(V9, ("D[M, N] f16", "D[M, N] f32"), ("stages   4", "stages   3")),
    "buffers 2": edit(V9, ("chunk 64", "chunk 64 buffers 2"), ("stages   4", "stages   3")),
    "buffers 3, turning in the tile loop": edit(V7, ("chunk 128", "chunk 32 buffers 3")),
    "release after read": edit(V9, ("chunk 64", "chunk 64 release after read")),
    "accumulators 2": edit(D8, ("stages   4", "stages   4\naccumulators 2"), ("[1]", "[accumulators]")),
    "cluster 1": edit(D9, ("cluster  2 x 1", "cluster  1 x 1")),
    "cluster along N": edit(D9, ("cluster  2 x 1", "cluster  1 x 2")),
    "two pairs": edit(D9, ("cluster  2 x 1", "cluster  4 x 1")),
    "two pairs along N, A multicast": edit(D8, ("2 x 1 ", "2 x 2 "), ("warp 3", "warp 3 multicast A")),
    "chunks of 32": NARROW,
    "block k 128": edit(V7, ("128 x 128 x 64", "128 x 128 x 128")),
    "block k 128, ragged": edit(V7, ("128 x 128 x 64", "128 x 128 x 128"), ("K = 4096", "K = 4104")),
    "block n 256": edit(V7, ("128 x 128 x 64", "128 x 256 x 64")),
    "ragged": edit(V9, (DYNAMIC[0], "M = 4000, N = 4104, K = 4072")),
    "one tile": edit(V9, (DYNAMIC[0], "M = 512, N = 256, K = 64")),
    "many tiles": edit(V9, (DYNAMIC[0], "M = 16384, N = 16384, K = 16384")),
    "one stage": edit(V9, ("stages   4", "stages   1")),
    "dynamic": DYNAMIC9,
    "dynamic K": edit(V7, ("K = 4096", "K = 4096 dynamic")),
    "registers": edit(V9, ("chunk 64", "chunk 64 registers 200"), ("warp 3", "warp 3 registers 40")),
    "groups of 3": edit(V9, ("group 8", "group 3"), ("ctas 148", "ctas 132")),
    "program of the epilogue": V9 + EARLY,
    "program of the consumer": V7 + LATE,
    "a loop of 3 syncs": V7 + SYNCS,
    "three consumers": edit(
        D9,
        ("128 x 128 x 64", "128 x 64 x 64"),
        ("stages   4", "stages   2"),
        ("warps 0..1", "warps 0..2"),
        ("warpgroup 2", "warpgroup 3"),
        ("warpgroups 0..1", "warpgroups 0..2"),
    ),
    "chunks of 16, stages of 128": edit(V7, ("128 x 128 x 64", "128 x 64 x 128"), ("chunk 128", "chunk 16")),
    "hopper": HOPPER,
    "hopper, cluster of 4": edit(HOPPER, ("1 x 1", "2 x 2"), ("registers 40", "registers 40 multicast A, B")),
    "hopper, dynamic": edit(HOPPER, DYNAMIC),
    "hopper, bf16, block k 128": edit(
        HOPPER, (" f16", " bf16"), ("64 x 256 x 64", "64 x 128 x 128"), ("stages   4", "stages   3")
    ),
    "hopper, f32 output": edit(HOPPER, ("D[M, N] f16", "D[M, N] f32"), ("chunk 64", "chunk 32")),
    "hopper, two instructions a tile": TWO_HIGH,
    "hopper, two instructions, bf16, block k 128": edit(
        TWO_HIGH, (" f16", " bf16"), ("128 x 128 x 64", "128 x 64 x 128"), ("stages   4", "stages   3")
    ),
    "hopper, two instructions, f32 output": edit(
        TWO_HIGH, ("D[M, N] f16", "D[M, N] f32"), ("stages   4", "stages   2")
    ),
    "hopper, rows without swizzle": edit(HOPPER, ("64 x 256 x 64", "64 x 144 x 64"), ("chunk 64", "chunk 72")),
    "hopper, narrow atoms, dynamic": edit(
        HOPPER, DYNAMIC, ("64 x 256 x 64", "64 x 144 x 64"), ("chunk 64", "chunk 48")
    ),
    "hopper, the last chunk moved back": UNEVEN,
    "hopper, two instructions, the last chunk moved back": edit(
        TWO_HIGH, ("128 x 128 x 64", "128 x 136 x 64"), ("chunk 32", "chunk 40"), ("stages   4", "stages   3")
    ),
    "hopper, one buffer": edit(HOPPER, ("chunk 64", "chunk 64 buffers 1")),
}
