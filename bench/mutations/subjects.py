"""The correct specs of the study: each in full, and scaled down for the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gemmspec.model import resolve
from gemmspec.protocol import Protocol, derive
from gemmspec.source import SourceFile
from gemmspec.syntax.parse import parse

SPECS = Path(__file__).parent.parent.parent / "specs"

HEAD = """\
kernel subject
target {target}
gemm   D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16 accumulate f32
sizes  M = 4096, N = 4096, K = 4096
"""
RINGS = """\
barrier tma2mma [stages]  producer  -> consumer
barrier mma2tma [stages]  consumer  -> producer
"""
BLACKWELL = HEAD.format(target="sm_100a")
HOPPER = HEAD.format(target="sm_90a")
ONE_WARP_EACH = """\
role producer  = tma       on warpgroup 1 warp 3
role consumer  = mma       on warpgroup 1 warp 0
role writeback = epilogue  on warpgroup 0 chunk {chunk}
"""
ACCUMULATOR = """\
barrier mma2ld  [1]       consumer  -> writeback
barrier ld2mma  [1]       writeback -> consumer
"""


@dataclass(frozen=True)
class Subject:
    """A correct spec. `small` has fewer stages or chunks, and the same statements; `scaled` says what was reduced."""

    name: str
    full: str
    small: str
    scaled: str


def protocol_or_none(text: str) -> Protocol | None:
    """Return the Protocol of a text; None where names or values are wrong."""
    source = SourceFile("subject", text)
    tree, errors = parse(source)
    spec, found = resolve(tree, source)
    return None if spec is None or errors or found else derive(spec)


def protocol_of(text: str) -> Protocol:
    """Return the Protocol of a text without errors in names and values."""
    protocol = protocol_or_none(text)
    assert protocol is not None, text
    return protocol


def subjects() -> tuple[Subject, ...]:
    """Return all subjects; the first three are the files of specs/."""
    return (
        _file("v7"),
        _file("v8"),
        _file("v9", ("chunk 64 ", "chunk 128")),
        _scaled("three stages", _basic, 3),
        _scaled("four stages, cluster 1", _basic, 4),
        _scaled("two accumulators", _double, 3),
        _scaled("two accumulators a consumer, pair", _double_pair, 3),
        _scaled("one role a warp, two producers", _two_producers, 3),
        _scaled("early release, commits in the last k", _custom, 3),
        _scaled("cluster of 4, multicast A", _cluster4, 3),
        _scaled("store ring of 2 buffers, 3 stages", _buffered, 3),
        _scaled("Hopper", _hopper, 3),
        _scaled("Hopper, cluster of 2, multicast B", _hopper_multicast, 3),
        _scaled("Hopper, release at once", _hopper_plain, 3),
        _scaled("Hopper, two CTAs a tile", _hopper_split, 3),
    )


def _file(name: str, *edits: tuple[str, str]) -> Subject:
    full = small = (SPECS / f"{name}.gemmspec").read_text()
    for old, new in (("stages   4", "stages   2"), *edits):
        small = small.replace(old, new)
    return Subject(
        name, full, small, ("2 stages, half the chunks" if edits else "2 stages") if small != full else "as it is"
    )


def _scaled(name: str, make: object, stages: int) -> Subject:
    assert callable(make)
    return Subject(name, make(stages, 32), make(2, 64), f"2 of {stages} stages, half the chunks")


def _basic(stages: int, chunk: int) -> str:
    shape = f"block 128 x 128 x 64\nstages {stages}\n"
    return BLACKWELL + shape + ONE_WARP_EACH.format(chunk=chunk) + RINGS + ACCUMULATOR


def _double(stages: int, chunk: int) -> str:
    shape = f"block 128 x 128 x 64\nstages {stages}\naccumulators 2\n"
    return BLACKWELL + shape + ONE_WARP_EACH.format(chunk=chunk) + RINGS + ACCUMULATOR.replace("[1]", "[accumulators]")


def _double_pair(stages: int, chunk: int) -> str:
    return (
        BLACKWELL
        + f"cluster 2 x 1\nblock 128 x 64 x 64\nstages {stages}\naccumulators 2\n"
        + "role producer  = tma       on warpgroup 2 warp 3\n"
        + "role consumer  = mma       on warpgroup 2 warps 0..1\n"
        + f"role writeback = epilogue  on warpgroups 0..1 chunk {chunk} release after read\n"
        + RINGS
        + "barrier mma2ld  [consumer x accumulators]  consumer  -> writeback\n"
        + "barrier ld2mma  [consumer x accumulators]  writeback -> consumer\n"
    )


def _two_producers(stages: int, chunk: int) -> str:
    return (
        BLACKWELL
        + f"block 128 x 128 x 64\nstages {stages}\n"
        + "role load_a    = tma       on warpgroup 1 warp 1\n"
        + "role load_b    = tma       on warpgroup 1 warp 2\n"
        + "role consumer  = mma       on warpgroup 1 warp 0\n"
        + f"role writeback = epilogue  on warpgroup 0 chunk {chunk}\n"
        + "barrier a_full  [stages]  load_a   -> consumer\n"
        + "barrier b_full  [stages]  load_b   -> consumer\n"
        + "barrier empty   [stages]  consumer -> load_a, load_b\n"
        + ACCUMULATOR
        + _loader("load_a", "A", "a_full")
        + _loader("load_b", "B", "b_full")
    )


def _loader(role: str, operand: str, barrier: str) -> str:
    return f"""program {role} {{
  for tile {{
    for k {{
      wait empty[stage]
      load {operand} {barrier}[stage]
      expect {barrier}[stage]
    }}
  }}
}}
"""


def _custom(stages: int, chunk: int) -> str:
    return (
        _basic(stages, chunk)
        + """program consumer {
  for tile {
    wait ld2mma[0]
    for k {
      wait tma2mma[stage]
      mma
      commit mma2tma[stage]
      if k == last {
        commit mma2ld[0]
      }
    }
  }
}
program writeback {
  for tile {
    wait mma2ld[0]
    for chunk {
      read
      if chunk == last {
        arrive ld2mma[0]
      }
      store
    }
  }
}
"""
    )


def _cluster4(stages: int, chunk: int) -> str:
    return (
        BLACKWELL
        + f"cluster 2 x 2\nblock 128 x 64 x 64\nstages {stages}\n"
        + ONE_WARP_EACH.format(chunk=chunk).replace("warp 3", "warp 3 multicast A")
        + RINGS
        + ACCUMULATOR
    )


def _buffered(stages: int, chunk: int) -> str:
    return _basic(stages, chunk).replace(f"chunk {chunk}", f"chunk {chunk} buffers 2")


def _hopper(stages: int, chunk: int) -> str:
    return (
        HOPPER
        + f"block 64 x 128 x 64\nstages {stages}\n"
        + "role producer  = tma            on warpgroup 0 warp 0\n"
        + f"role consumer  = mma, epilogue  on warpgroups 1..2 chunk {chunk}\n"
        + RINGS
    )


def _hopper_multicast(stages: int, chunk: int) -> str:
    return _hopper(stages, chunk).replace("block", "cluster 2 x 1\nblock").replace("warp 0", "warp 0 multicast B")


def _hopper_split(stages: int, chunk: int) -> str:
    return (
        HOPPER
        + f"block 64 x 128 x 64\nstages {stages}\nschedule persistent split 2\n"
        + "role producer = tma           on warpgroup 0 warp 0\n"
        + f"role consumer = mma, epilogue on warpgroup 1 chunk {chunk} buffers 1\n"
        + RINGS
        + "barrier part2sum [1] consumer -> consumer\n"
        + "barrier sum2part [1] consumer -> consumer\n"
    )


def _hopper_plain(stages: int, chunk: int) -> str:
    return (
        _hopper(stages, chunk)
        + """program consumer {
  for tile {
    for k {
      wait tma2mma[stage]
      mma
      retire 0
      arrive mma2tma[stage]
    }
    for chunk {
      store
    }
  }
}
"""
    )
