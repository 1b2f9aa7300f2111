"""The timed model: against published times, against itself, and that it orders variants as an engineer would."""

from __future__ import annotations

import importlib
import itertools
import runpy
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from gemmspec.diagnostics import SizeError
from gemmspec.driver import check
from gemmspec.protocol import Protocol
from gemmspec.source import SourceFile
from gemmspec.targets import TARGETS
from gemmspec.targets.timing import figures
from gemmspec.timing import Prediction, Stuck, predict
from gemmspec.timing.costs import TIMINGS
from gemmspec.timing.report import data, text
from tests.strategies import spec_texts

ROOT = Path(__file__).parent.parent
BENCH = runpy.run_path(str(ROOT / "bench" / "predict.py"), run_name="bench_predict")
PREDICT = importlib.import_module("gemmspec.timing.predict")


def spec_text(name: str) -> str:
    return (ROOT / "specs" / f"{name}.gemmspec").read_text(encoding="utf-8")


def protocol_of(words: str, *edits: tuple[str, str]) -> Protocol:
    for old, new in edits:
        assert old in words, old
        words = words.replace(old, new)
    checked = check(SourceFile("a", words))
    assert checked.protocol is not None
    return checked.protocol


def time_of(words: str, *edits: tuple[str, str], **sizes: int) -> float:
    return predict(protocol_of(words, *edits), sizes).seconds


@pytest.mark.parametrize("name, milliseconds", [("v7", 0.230), ("v8", 0.104), ("v9", 0.094)])
def test_published_times_on_a_b200_come_out(name: str, milliseconds: float) -> None:
    assert predict(protocol_of(spec_text(name))).seconds * 1e3 == pytest.approx(milliseconds, rel=0.15)


@pytest.mark.parametrize("size", [4096, 8192])
def test_a_hopper_kernel_is_as_fast_as_measured(size: int) -> None:
    assert BENCH["predicted"]("hopper", size).tflops == pytest.approx(790, rel=0.05)


def test_the_tables_of_the_page_are_fresh() -> None:
    page = (ROOT / "docs" / "timing.md").read_text(encoding="utf-8")
    assert BENCH["page"]() == page, "run `python bench/predict.py --write`"


def test_every_target_has_a_timing_and_every_figure_a_source() -> None:
    assert set(TIMINGS) == set(TARGETS)
    for target, timing in TIMINGS.items():
        assert timing.device == TARGETS[target].device
        for name, figure in figures(timing):
            assert figure.source, name
            assert figure >= 0, name


def test_more_stages_are_never_slower_and_two_accumulators_hide_the_stores() -> None:
    v7 = [time_of(spec_text("v7"), ("stages   2", f"stages   {n}")) for n in (2, 3, 4, 5)]
    assert v7[0] > 1.2 * v7[1]
    assert all(later <= 1.001 * earlier for earlier, later in itertools.pairwise(v7))
    two = ("[1]", "[accumulators]"), ("stages   4", "stages   5\naccumulators 2")
    one = ("stages   4", "stages   5")
    assert time_of(spec_text("v8"), *two) < 0.97 * time_of(spec_text("v8"), one)


def test_a_late_release_costs_time() -> None:
    late = time_of(spec_text("v7"), ("stages   2", "stages   4"), (" release after read", ""))
    assert late > time_of(spec_text("v7"), ("stages   2", "stages   4"))


def check_sanity(p: Prediction) -> None:
    assert 0 < p.seconds < 1e3
    assert 0 < p.utilisation <= 1
    assert 0 < p.l2 <= 1.02 and 0 <= p.dram <= 1.02
    assert 0 <= p.without_tile < 1
    assert sum(part for _, part in p.stalls) <= 1.0001
    assert list(p.tile_ends) == sorted(p.tile_ends)
    for waits in p.waits:
        assert -1e-6 <= waits.busy <= 1
        assert waits.busy + sum(part for _, part in waits.by) <= 1.0001


SIZES = [(128, 128, 64), (1, 8, 8), (4096, 256, 4096), (256, 8192, 64), (4000, 4104, 4072), (8192, 8192, 2048)]


@pytest.mark.parametrize("m, n, k", SIZES)
@pytest.mark.parametrize("name", ["v7", "v9"])
def test_figures_make_sense_at_odd_sizes(name: str, m: int, n: int, k: int) -> None:
    p = predict(protocol_of(spec_text(name)), {"M": m, "N": n, "K": k})
    check_sanity(p)
    assert p.sizes == (m, n, k)
    assert text(p).startswith(f"predicted: `hgemm_{name}` at M={m} N={n} K={k} takes")
    assert data(p)["milliseconds"] == p.seconds * 1e3


def test_it_is_the_same_every_time_and_a_timeline_changes_nothing() -> None:
    protocol = protocol_of(spec_text("v9"))
    first, second = predict(protocol, timeline=True), predict(protocol, timeline=True)
    assert first == second
    assert predict(protocol).seconds == first.seconds


@pytest.mark.parametrize("name", ["v7", "v8", "v9"])
def test_tiles_that_are_not_replayed_are_as_long_as_those_that_are(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"M": 8192, "N": 8192, "K": 512}
    protocol = protocol_of(spec_text(name))
    whole = predict(protocol, sizes)
    monkeypatch.setattr(PREDICT, "MOST_ACTIONS", 1)
    part = predict(protocol, sizes)
    assert part.replayed < whole.replayed == whole.waves
    assert part.seconds == pytest.approx(whole.seconds, rel=0.03)


def test_a_long_k_continues_along_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = protocol_of(spec_text("v9"))
    whole = predict(protocol, {"K": 4096})
    monkeypatch.setattr(PREDICT, "LONGEST_K", 32)
    assert predict(protocol, {"K": 4096}).seconds == pytest.approx(whole.seconds, rel=0.01)


def test_a_deadlock_is_stuck() -> None:
    broken = spec_text("v9").replace("arrivals 2    phase 1", "arrivals 2    phase 0")
    with pytest.raises(Stuck):
        predict(protocol_of(broken))


def test_fewer_ctas_are_slower_and_more_than_fit_run_one_after_the_other() -> None:
    v8 = spec_text("v8")
    usual = time_of(v8)
    assert time_of(v8, ("ctas 148", "ctas 74")) > 1.3 * usual
    assert time_of(v8, ("ctas 148", "ctas 296")) == pytest.approx(usual, rel=0.05)


def test_multicast_asks_l2_for_less() -> None:
    shared = BENCH["HOPPER"]
    with_it, without = predict(protocol_of(shared)), predict(protocol_of(shared, (" multicast B", "")))
    assert with_it.l2 < 0.75 * without.l2


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(spec_texts(correct=True))
def test_what_lint_finds_sound_runs_to_its_end(words: str) -> None:
    checked = check(SourceFile("a", words))
    if checked.protocol is not None and checked.report.ok:
        check_sanity(predict(checked.protocol, {"M": 2048, "N": 1024, "K": 320}))


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({}, "M, N, K: known at run time only"),
        ({"M": 512, "N": 512}, "K: known at run time only"),
        ({"M": 2**31 - 1, "N": 2**31 - 8, "K": 64}, "output tiles, and at most 500,000"),
    ],
)
def test_sizes_that_are_not_known_or_beyond_reason(sizes: dict[str, int], said: str) -> None:
    with pytest.raises(SizeError, match=said):
        predict(protocol_of(spec_text("hopper_n256_dynamic")), sizes)
