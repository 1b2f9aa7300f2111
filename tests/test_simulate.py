"""Simulation: right specs give right numbers under any schedule, broken ones fail, and the same seed does the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gemmspec.driver import check
from gemmspec.protocol import derive
from gemmspec.protocol.program import (
    Arrive,
    Branch,
    Commit,
    Expect,
    FenceSide,
    Loop,
    Protocol,
    ProxyFence,
    Statement,
    StoreWait,
    TcgenFence,
    Wait,
    WarpgroupSync,
)
from gemmspec.protocol.schedule import tile_order, tiles_of
from gemmspec.simulate import Outcome, Problem, prepare, simulate
from gemmspec.simulate.barriers import Mbarrier, ProtocolFault
from gemmspec.simulate.problem import rounded
from gemmspec.source import SourceFile
from gemmspec.vocabulary import DType

SPECS = Path(__file__).parent.parent / "specs"
V7, V8, V9 = ((SPECS / f"{name}.gemmspec").read_text() for name in ("v7", "v8", "v9"))

HOPPER = """
kernel hopper
target sm_90a
gemm     D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16 accumulate f32
sizes    M = 4096, N = 4096, K = 4096
cluster  2 x 1
block    64 x 256 x 64
stages   4
schedule persistent
role producer = tma            on warpgroup 0 warp 0 multicast B
role math     = mma, epilogue  on warpgroups 1..2
barrier full  [stages]  producer -> math
barrier empty [stages]  math -> producer
"""


UNEVEN = HOPPER.replace("64 x 256 x 64", "64 x 136 x 64").replace("warpgroups 1..2", "warpgroups 1..2 chunk 56")
TWO_HIGH = HOPPER.replace("64 x 256 x 64", "128 x 128 x 64").replace("warpgroups 1..2", "warpgroups 1..2 chunk 32")


def protocol_of(text: str) -> Protocol:
    checked = check(SourceFile("test.gemmspec", text))
    assert checked.spec is not None, checked.report.diagnostics
    return checked.protocol or derive(checked.spec)


def sizes(m: int, n: int, k: int) -> dict[str, int]:
    return {"M": m, "N": n, "K": k}


# ---- right numbers


@pytest.mark.parametrize("mnk", [(512, 512, 512), (640, 256, 64), (300, 328, 200)], ids=str)
@pytest.mark.parametrize(
    "text", [V7, V8, V9, HOPPER, TWO_HIGH, UNEVEN], ids=["v7", "v8", "v9", "hopper", "two high", "uneven"]
)
def test_right_specs_give_right_numbers(text: str, mnk: tuple[int, int, int]) -> None:
    protocol = protocol_of(text)
    problem = prepare(protocol.spec, sizes(*mnk))
    for seed, ctas in ((0, None), (1, 2), (2, 4)):
        outcome = simulate(protocol, sizes(*mnk), seed, ctas=ctas, problem=problem)
        assert outcome.ok, outcome.faults
        assert outcome.relative_error < 5e-4
        assert outcome.tiles * outcome.blocks > 0
        if ctas == 2:
            assert outcome.tiles > outcome.clusters, "no cluster takes a second tile"


@pytest.mark.parametrize("text", [V7, V8, V9, HOPPER], ids=["v7", "v8", "v9", "hopper"])
def test_bf16(text: str) -> None:
    outcome = simulate(protocol_of(text.replace("f16", "bf16")), sizes(512, 256, 256))
    assert outcome.ok
    assert 1e-3 < outcome.relative_error < 3e-3


def test_f32_output() -> None:
    text = V9.replace("D[M, N] f16", "D[M, N] f32").replace("chunk 64", "chunk 32")
    outcome = simulate(protocol_of(text), sizes(512, 256, 128))
    assert outcome.ok
    assert outcome.relative_error < 1e-6


def test_rings_of_accumulators_and_store_buffers() -> None:
    text = (
        V8.replace("stages   4", "stages   3\naccumulators 2")
        .replace("chunk 128", "chunk 64 buffers 2 release after read")
        .replace("mma2ld  [1] ", "mma2ld  [accumulators]")
        .replace("ld2mma  [1] ", "ld2mma  [accumulators]")
    )
    protocol = protocol_of(text)
    for seed in range(5):
        assert simulate(protocol, sizes(1024, 512, 192), seed, ctas=2).ok


@pytest.mark.parametrize(("cluster", "operand"), [("1 x 2", "A"), ("2 x 2", "A")])
def test_multicast(cluster: str, operand: str) -> None:
    text = V9.replace("cluster  2 x 1", f"cluster  {cluster}").replace("warp 3", f"warp 3 multicast {operand}")
    for written in ("  at cta 0", "  multicast 0b11", "arrivals 2 ", "arrivals 256", "arrivals 1 "):
        text = text.replace(written, "")
    protocol = protocol_of(text)
    for seed in range(3):
        assert simulate(protocol, sizes(768, 640, 320), seed, ctas=4).ok


def test_some_clusters_only() -> None:
    outcome = simulate(protocol_of(V7), sizes(512, 512, 64), clusters=3)
    assert outcome.ok
    assert outcome.clusters == outcome.tiles == 3
    assert "".join(outcome.map).count(" ") == 13


# ---- broken protocols

Edit = Callable[[Statement], bool]


def without(protocol: Protocol, role: str, drop: Edit, first: int = 0) -> Protocol:
    """Drop the statements of a role that `drop` names, from the `first` such on."""
    seen = 0

    def keep(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        nonlocal seen
        out: list[Statement] = []
        for statement in body:
            if drop(statement):
                seen += 1
                if seen > first:
                    continue
            nested = isinstance(statement, Loop | Branch)
            out.append(replace(statement, body=keep(statement.body)) if nested else statement)
        return tuple(out)

    programs = tuple(replace(p, body=keep(p.body)) if p.role.name == role else p for p in protocol.programs)
    broken = replace(protocol, programs=programs)
    assert broken != protocol
    return broken


def with_bytes(protocol: Protocol, factor: float) -> Protocol:
    def change(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(map(change_one, body))

    def change_one(statement: Statement) -> Statement:
        if isinstance(statement, Loop | Branch):
            return replace(statement, body=change(statement.body))
        if isinstance(statement, Expect):
            return replace(statement, bytes=round(statement.bytes * factor))
        return statement

    return replace(protocol, programs=tuple(replace(p, body=change(p.body)) for p in protocol.programs))


def edited(old: str, new: str, text: str = V9) -> Protocol:
    assert text.count(old) == 1
    return protocol_of(text.replace(old, new))


def on(kind: type[Wait] | type[Commit] | type[Arrive], barrier: str) -> Edit:
    return lambda s: isinstance(s, kind) and s.barrier == barrier


def v9() -> Protocol:
    return protocol_of(V9)


# What is broken, and how it must show: the kinds of fault, of which one seed in twenty must give one.
BROKEN: dict[str, tuple[Callable[[], Protocol], set[str]]] = {
    "the producer starts on phase 0": (
        lambda: edited("arrivals 2    phase 1", "arrivals 2    phase 0"),
        {"hang"},
    ),
    "the consumer starts on phase 1": (
        lambda: edited("via tma      arrivals 1    phase 0", "via tma      arrivals 1    phase 1"),
        {"hazard", "hang"},
    ),
    "half of the arrivals release the accumulator": (lambda: edited("arrivals 256", "arrivals 128"), {"hazard"}),
    "twice the arrivals release the accumulator": (lambda: edited("arrivals 256", "arrivals 512"), {"hang"}),
    "one consumer of two releases the stage": (lambda: edited("arrivals 2 ", "arrivals 1 "), {"hazard", "hang"}),
    "stages are released in one CTA only": (
        lambda: edited("arrivals 2    phase 1  multicast 0b11", "arrivals 2    phase 1  multicast 0b01"),
        {"hang"},
    ),
    "twice the bytes are expected": (lambda: with_bytes(v9(), 2), {"hang"}),
    "half of the bytes are expected": (lambda: with_bytes(v9(), 0.5), {"hazard", "hang", "over-arrival"}),
    "the producer does not wait": (lambda: without(v9(), "producer", on(Wait, "mma2tma")), {"hazard", "over-arrival"}),
    "the consumer does not wait for data": (lambda: without(v9(), "consumer", on(Wait, "tma2mma")), {"hazard"}),
    "the consumer does not wait for the accumulator": (
        lambda: without(v9(), "consumer", on(Wait, "ld2mma")),
        {"hazard"},
    ),
    "the writeback does not wait": (lambda: without(v9(), "writeback", on(Wait, "mma2ld")), {"hazard"}),
    "stages are not released": (lambda: without(v9(), "consumer", on(Commit, "mma2tma")), {"hang"}),
    "the accumulator is not released": (lambda: without(v9(), "writeback", on(Arrive, "ld2mma")), {"hang"}),
    "stores are not waited for": (
        lambda: without(v9(), "writeback", lambda s: isinstance(s, StoreWait)),
        {"hazard"},
    ),
    "no proxy fence": (lambda: without(v9(), "writeback", lambda s: isinstance(s, ProxyFence)), {"hazard"}),
    "no sync of the warpgroup": (
        lambda: without(v9(), "writeback", lambda s: isinstance(s, WarpgroupSync)),
        {"hazard"},
    ),
    "no tcgen05 fence behind the wait": (
        lambda: without(v9(), "writeback", lambda s: isinstance(s, TcgenFence) and s.side is FenceSide.AFTER),
        {"hazard"},
    ),
    "barriers are made visible to the own CTA only": (lambda: replace(v9(), start_sync="cta"), {"uninitialised"}),
    "CTAs exit without their peer": (lambda: replace(v9(), end_sync="none"), {"exited"}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_protocols_fail(name: str) -> None:
    make, kinds = BROKEN[name]
    protocol = make()
    size = sizes(1024, 512, 320)
    problem = prepare(protocol.spec, size)
    for seed in range(20):
        outcome = simulate(protocol, size, seed, ctas=2, problem=problem)
        if not outcome.ok:
            assert kinds & {fault.kind for fault in outcome.faults}, outcome.faults
            assert outcome.wrong or "exited" in kinds
            return
    pytest.fail("twenty schedules did not show it")


def test_a_hang_says_who_waits_for_what() -> None:
    protocol = edited("arrivals 2    phase 1", "arrivals 2    phase 0")
    (fault,) = simulate(protocol, sizes(512, 256, 128), clusters=1).faults
    assert fault.cycle in (("consumer", "producer"), ("producer", "consumer"))
    wait = next(w for w in fault.waits if w.place.role == "producer")
    assert (wait.barrier, wait.slot, wait.parity, wait.arrivals) == ("mma2tma", 0, 0, 2)
    assert (wait.place.cta, wait.place.tile, wait.place.k) == (0, 0, 0)


def test_a_hazard_names_both_sides() -> None:
    outcome = simulate(edited("arrivals 256", "arrivals 128"), sizes(1024, 512, 320), ctas=2)
    fault = outcome.faults[0]
    assert fault.place is not None
    assert fault.other is not None
    assert (fault.place.role, fault.other.role) == ("writeback", "consumer")


# ---- determinism


def test_the_seed_decides_everything() -> None:
    protocol, size = v9(), sizes(512, 512, 192)
    problem = prepare(protocol.spec, size)

    def run(seed: int, of: Protocol = protocol) -> Outcome:
        return simulate(of, size, seed, ctas=2, problem=problem)

    assert run(3) == run(3)
    assert np.array_equal(run(3).d, run(4).d)
    assert run(3).steps != run(4).steps
    broken = edited("arrivals 256", "arrivals 128")
    assert run(3, broken).faults == run(3, broken).faults


# ---- parts


def test_tile_order_is_that_of_the_scheduler() -> None:
    # The picture in the docstring of ClusterPersistentScheduler2D: 4 x 4 tiles in groups of 2.
    order = tile_order(4, 4, 2)
    assert [order.index((m, n)) for m in range(4) for n in range(4)] == [
        0, 2, 4, 6,
        1, 3, 5, 7,
        8, 10, 12, 14,
        9, 11, 13, 15,
    ]  # fmt: skip
    assert tiles_of(order, 0, 3) == ((0, 0), (1, 1), (0, 3), (3, 0), (2, 2), (3, 3))


@pytest.mark.parametrize(("m_tiles", "n_tiles", "group"), [(5, 3, 2), (1, 4, 8), (8, 1, 8), (17, 5, 8), (3, 3, 1)])
def test_tile_order_equals_the_formulas_of_the_scheduler(m_tiles: int, n_tiles: int, group: int) -> None:
    # _gm_emit_full_and_tail of tvm/backend/cuda/lang/tile_scheduler.py, line by line.
    full_groups = m_tiles // group
    tail_rows = m_tiles - full_groups * group
    group_span = group * n_tiles

    def tile(linear: int) -> tuple[int, int]:
        if full_groups > 0 and linear < full_groups * group_span:
            within = linear % group_span
            return linear // group_span * group + within % group, within // group
        rest = linear - full_groups * group_span
        return full_groups * group + rest % tail_rows, rest // tail_rows

    assert tile_order(m_tiles, n_tiles, group) == tuple(tile(i) for i in range(m_tiles * n_tiles))


def test_rounding_to_bf16_is_to_nearest_even() -> None:
    bits = np.array([0x3F800000, 0x3F808000, 0x3F808001, 0x3F818000, 0x3F817FFF, 0x7F800000, 0xFF7FFFFF], np.uint32)
    expected = np.array([0x3F80, 0x3F80, 0x3F81, 0x3F82, 0x3F81, 0x7F80, 0xFF80], np.uint32) << 16
    assert np.array_equal(rounded(bits.view(np.float32), DType.BF16).view(np.uint32), expected)
    assert np.isnan(rounded(np.array([np.nan], np.float32), DType.BF16)).all()


def test_mbarrier() -> None:
    barrier = Mbarrier("b[0]", 2)
    with pytest.raises(ProtocolFault):
        barrier.passes(0)
    barrier.initialised = True
    assert barrier.passes(1)
    assert not barrier.passes(0)
    barrier.complete(64)  # bytes may come before they are expected
    barrier.arrive(1)
    barrier.expect(64)
    assert barrier.phase == 0
    barrier.arrive(1)
    assert barrier.phase == 1
    assert barrier.passes(0)
    assert not barrier.passes(1)
    barrier.expect(64)
    barrier.arrive(2)
    assert barrier.phase == 1
    with pytest.raises(ProtocolFault) as fault:
        barrier.arrive(1)
    assert fault.value.kind == "over-arrival"
    barrier.complete(64)
    barrier.arrive(3)  # one more than a phase takes: the rest counts for the next
    assert (barrier.phase, barrier.pending) == (3, 1)


def test_a_problem_of_other_sizes_is_refused() -> None:
    protocol = v9()
    other: Problem = prepare(protocol.spec, sizes(64, 64, 64))
    with pytest.raises(ValueError, match="sizes"):
        simulate(protocol, sizes(128, 64, 64), problem=other)


# ---- the command


def run(*arguments: str) -> tuple[int, str, str]:
    from gemmspec.cli.simulate import command

    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    if result.exception and not isinstance(result.exception, SystemExit):
        return 2, result.stdout, str(result.exception)
    return int(result.return_value), result.stdout, result.stderr


SMALL = ("--size", "M=512", "--size", "N=256", "--size", "K=128")


def test_command_on_a_right_spec() -> None:
    status, out, _ = run(str(SPECS / "v9.gemmspec"), *SMALL, "--seeds", "3")
    assert status == 0
    assert "right: `hgemm_v9` at M=512 N=256 K=128, under 3 schedules: seeds 0..2" in out


def test_command_on_a_broken_spec(tmp_path: Path) -> None:
    path = tmp_path / "bad.gemmspec"
    path.write_text(V9.replace("arrivals 2    phase 1", "arrivals 2    phase 0"))
    status, out, _ = run(str(path), *SMALL)
    assert status == 1
    assert "GS111" in out
    assert "never stored" not in out
    status, out, _ = run(str(path), *SMALL, "--force")
    assert status == 1
    assert "hang in cluster 0: no role can go on" in out
    assert "producer 0 of CTA 1 at tile 0 (row 0, column 0), k 0 waits for `mma2tma[0]` parity 0" in out
    assert f"{path}:17" in out
    status, out, _ = run(str(path), *SMALL, "--force", "--format", "json")
    data = json.loads(out)
    assert (status, data["ok"], data["schedules"][0]["relative_error"]) == (1, False, None)
    assert data["schedules"][0]["faults"][0]["waits"][0]["place"]["line"] in range(1, 25)


def test_command_refuses_what_does_not_fit() -> None:
    status, _, err = run(str(SPECS / "v9.gemmspec"), "--size", "M=1000000", "--size", "N=1000000")
    assert status == 2
    assert "GiB" in err
