"""CTAs that share an output tile: specs that lint proves, numbers, kernels; and what lint says of broken exchanges."""

from __future__ import annotations

from pathlib import Path

import pytest
from audit_specs import edit

from gemmspec.audit import audit
from gemmspec.codegen import lower
from gemmspec.driver import check
from gemmspec.protocol import Protocol
from gemmspec.protocol.tile import Tiling, depth_of, receive_slot
from gemmspec.simulate import simulate
from gemmspec.source import SourceFile
from gemmspec.toolchain.assemble import assemble, find_nvcc
from gemmspec.toolchain.start import light_frames
from gemmspec.toolchain.tvm_kernel import lowered, prim_func

SPECS = sorted((Path(__file__).parent.parent / "specs").glob("hopper_split*.gemmspec"))
SPLIT = """\
kernel split
target sm_90a
gemm     D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16 accumulate f32
sizes    M = 300 dynamic, N = 248 dynamic, K = 328 dynamic
cluster  1 x 1
block    64 x 64 x 64
stages   3
schedule persistent ctas 16 group 8 split 2
role math     = mma, epilogue  on warpgroups 1..2 chunk 32 buffers 1
role producer = tma            on warpgroup 0
barrier tma2mma  [stages]  producer -> math
barrier mma2tma  [stages]  math     -> producer
barrier part2sum [math]    math     -> math
barrier sum2part [math]    math     -> math
"""
EXCHANGE = """
program math {
  for tile {
    for k {
      wait tma2mma
      mma
      retire 0
      arrive mma2tma
    }
    wait sum2part
    send
    arrive part2sum
    wait part2sum
    add
    arrive sum2part
    for chunk {
      store
    }
  }
}
"""
RIGHT = {
    "two": SPLIT,
    "four": edit(SPLIT, ("split 2", "split 4"), ("chunk 32", "chunk 16")),
    "eight": edit(SPLIT, ("split 2", "split 8"), ("chunk 32", "chunk 8 ")),
    "cluster along M": edit(SPLIT, ("1 x 1", "2 x 1"), ("warpgroup 0", "warpgroup 0 multicast B")),
    "cluster along M, four high": edit(SPLIT, ("1 x 1", "4 x 1"), ("warpgroup 0", "warpgroup 0 multicast B")),
    "cluster along N": edit(SPLIT, ("1 x 1", "1 x 2"), ("warpgroup 0", "warpgroup 0 multicast A")),
    "square": edit(SPLIT, ("1 x 1", "2 x 2"), ("warpgroup 0", "warpgroup 0 multicast A, B")),
    "128 rows": edit(SPLIT, ("64 x 64 x 64", "128 x 64 x 64")),
    "one consumer": edit(SPLIT, ("warpgroups 1..2", "warpgroup 1"), ("[math]", "[1]")),
    "one slot for both consumers": edit(SPLIT, ("[math]", "[1]")),
    "own program": SPLIT + EXCHANGE,
    "one thread arrives": edit(
        SPLIT + EXCHANGE,
        ("math     -> math\n", "math     -> math via elected\n"),
        ("    arrive part2sum", "    sync warpgroup\n    arrive part2sum"),
        ("    arrive sum2part", "    sync warpgroup\n    arrive sum2part"),
    ),
}
PARTS, ROOM = (f"{name} [math]    math     -> math" for name in ("part2sum", "sum2part"))
BROKEN = {
    "no room is waited for": (edit(SPLIT, ("barrier sum2part [math]    math     -> math\n", "")), "GS118"),
    "no part is waited for": (edit(SPLIT + EXCHANGE, ("    wait part2sum\n", "")), "GS125"),
    "send without room": (edit(SPLIT + EXCHANGE, ("    wait sum2part\n", "")), "GS125"),
    "nothing sent": (edit(SPLIT + EXCHANGE, ("    send\n", "")), "GS201"),
    "nothing added": (edit(SPLIT + EXCHANGE, ("    add\n", "")), "GS207"),
    "added twice": (edit(SPLIT + EXCHANGE, ("    add\n", "    add\n    add\n")), "GS207"),
    "sent behind the arrival": (
        edit(SPLIT + EXCHANGE, ("    send\n    arrive part2sum\n", "    arrive part2sum\n    send\n")),
        "GS201",
    ),
    "released before it is added": (
        edit(SPLIT + EXCHANGE, ("    add\n    arrive sum2part\n", "    arrive sum2part\n    add\n")),
        "GS202",
    ),
    "sent before all is multiplied": (edit(SPLIT + EXCHANGE, ("      retire 0\n", "      retire 1\n")), "GS202"),
    "too few arrivals": (edit(SPLIT, (PARTS, f"{PARTS} arrivals 64")), "GS112"),
    "wrong phase": (edit(SPLIT, (ROOM, f"{ROOM} phase 0")), "GS111"),
    "own barrier": (edit(SPLIT, (PARTS, f"{PARTS} multicast own")), "GS114"),
    "one thread for all": (edit(SPLIT, (PARTS, f"{PARTS} via elected")), "GS201"),
    "send without split": (edit(SPLIT + EXCHANGE, (" split 2", "")), "GS015"),
    "three": (edit(SPLIT, ("split 2", "split 3")), "GS006"),
    "more CTAs than a cluster has": (
        edit(SPLIT, ("split 2", "split 8"), ("1 x 1", "2 x 1"), ("chunk 32", "chunk 8 ")),
        "GS308",
    ),
    "one chunk for two": (edit(SPLIT, ("chunk 32", "chunk 64")), "GS404"),
}


def protocol_of(text: str) -> Protocol:
    checked = check(SourceFile("split", text))
    assert checked.protocol is not None, [d.message for d in checked.report.diagnostics]
    return checked.protocol


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_exchange_is_proved_and_computes_the_product(name: str) -> None:
    protocol = protocol_of(RIGHT[name])
    for seed in range(2):
        outcome = simulate(protocol, {}, seed)
        assert outcome.ok, outcome


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_exchange_is_reported(name: str) -> None:
    text, code = BROKEN[name]
    report = check(SourceFile("split", text)).report
    assert code in {d.code for d in report.diagnostics}, [(d.code, d.message) for d in report.diagnostics]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cluster  1 x 1", "cluster  1 x 0", "`cluster` is 0, out of range 1 to 16"),
        ("split 2", "split 0", "`split` is 0, out of range 1 to 8"),
        ("split 2", "split 16", "`split` is 16, out of range 1 to 8"),
        ("split 2", "split 3", "`split` is 3, but takes 1, 2, 4 or 8"),
    ],
)
def test_what_cannot_be_read_is_said_once(old: str, new: str, message: str) -> None:
    found = check(SourceFile("split", edit(SPLIT, (old, new)))).report.diagnostics
    assert [d.message for d in found] == [message]


@pytest.mark.parametrize("name", RIGHT)
def test_a_kernel_is_read_back(name: str, tmp_path: Path) -> None:
    protocol = protocol_of(RIGHT[name])
    module = lower(protocol)
    path = tmp_path / f"{module.name}.py"
    path.write_text(module.source)
    with light_frames():
        assert audit(prim_func(path, module.name, ()), protocol) == ()


@pytest.mark.skipif(find_nvcc() is None, reason="there is no nvcc")
@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_a_kernel_is_assembled_without_spills(path: Path, tmp_path: Path) -> None:
    module = lower(protocol_of(path.read_text()))
    source = tmp_path / f"{module.name}.py"
    source.write_text(module.source)
    with light_frames():
        function = prim_func(source, module.name, ())
    cubin = assemble(lowered(function, module.name, "sm_90a", source).cuda, module.name, "sm_90a")
    assert cubin is not None
    assert (cubin.report.spill_store_bytes, cubin.report.spill_load_bytes, cubin.report.stack_bytes) == (0, 0, 0)


def test_shares_of_k_cover_it_once() -> None:
    spec = protocol_of(RIGHT["four"]).spec
    tiling = Tiling.of(spec)
    for k in (8, 64, 72, 256, 264, 1000):
        starts = [depth_of(spec, tiling, k, rank, i) for rank in range(4) for i in range(tiling.k_tiles(k))]
        assert starts == list(range(0, len(starts) * tiling.block_k, tiling.block_k)) and starts[-1] + 64 >= k
        assert len(starts) - 4 < -(-k // tiling.block_k)


def test_each_peer_has_a_slot_of_its_own() -> None:
    spec = protocol_of(RIGHT["eight"]).spec
    for owner in range(8):
        assert [receive_slot(spec, sender, owner) for sender in range(8) if sender != owner] == list(range(7))
