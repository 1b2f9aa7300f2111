"""Advice: asked for apart, silent where anything is wrong, and true."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmspec import rules
from gemmspec.driver import check
from gemmspec.proof import prove
from gemmspec.proof.flight import most_in_flight
from gemmspec.proof.redundant import redundant, waits_of, without
from gemmspec.protocol import Protocol
from gemmspec.protocol.tile import Tiling, waves_of
from gemmspec.source import SourceFile

ROOT = Path(__file__).parent.parent
SPECS = {name: (ROOT / f"specs/{name}.gemmspec").read_text(encoding="utf-8") for name in ("v7", "v8", "v9")}
BAD = {rule.code: rule.bad for rule in rules.ADVICE}


def codes(text: str, sizes: dict[str, int] | None = None, advice: bool = True) -> list[str]:
    found = check(SourceFile("spec", text), sizes or {}, advice=advice).report.diagnostics
    return sorted(d.code for d in found)


def protocol_of(text: str) -> Protocol:
    protocol = check(SourceFile("spec", text)).protocol
    assert protocol is not None
    return protocol


@pytest.mark.parametrize("code", BAD)
def test_advice_is_given_only_when_asked_for(code: str) -> None:
    assert codes(BAD[code], advice=False) == []


def test_no_advice_on_a_spec_that_is_wrong() -> None:
    wrong = SPECS["v9"].replace("arrivals 256", "arrivals 128")
    assert codes(wrong) == ["GS112"]


def test_advice_on_the_shipped_specs() -> None:
    assert {name: codes(text) for name, text in SPECS.items()} == {
        "v7": ["GS505"],
        "v8": ["GS503", "GS505", "GS506"],
        "v9": ["GS503", "GS506"],
    }


@pytest.mark.parametrize("name", SPECS)
def test_a_standard_pipeline_needs_every_wait(name: str) -> None:
    protocol = protocol_of(SPECS[name])
    assert redundant(protocol) == ()
    for _, wait in waits_of(protocol):
        assert prove(without(protocol, lambda s, wait=wait: s is wait)), wait


def test_what_is_redundant_may_be_left_out_all_at_once() -> None:
    twice = "barrier again   [accumulators] consumer  -> writeback\n"
    protocol = protocol_of(BAD["GS502"] + twice)
    names = [r.plan.name for r in redundant(protocol)]
    assert names == ["again", "done"]
    rest = without(protocol, lambda s: getattr(s, "barrier", "") in names)
    assert prove(rest) == ()
    covers = [r.because for r in redundant(protocol)]
    assert all(cover and cover[1].barrier in ("mma2ld", "done") for cover in covers)


@pytest.mark.parametrize(
    ("k_tiles", "tiles", "most"), [(None, None, 4), (1, 1, 1), (2, 1, 2), (1, 3, 3), (3, 2, 4), (100, 1, 4)]
)
def test_stages_in_flight(k_tiles: int | None, tiles: int | None, most: int) -> None:
    assert most_in_flight(protocol_of(SPECS["v9"]), k_tiles, tiles) == most


def test_stages_in_flight_on_hopper() -> None:
    text = (ROOT / "tests/corpus/rules/gs503/hopper.gemmspec").read_text(encoding="utf-8")
    assert most_in_flight(protocol_of(text), None, None) == 4


@pytest.mark.parametrize(("m", "waves"), [(512, 1), (4096, 2), (512 * 37, 8), (512 * 37 + 1, 9)])
def test_waves(m: int, waves: int) -> None:
    spec = check(SourceFile("spec", SPECS["v9"]), {"M": m}).spec
    assert spec is not None
    assert waves_of(spec, Tiling.of(spec)) == waves


def test_a_full_last_wave_is_no_matter() -> None:
    assert "GS506" in codes(SPECS["v9"])
    assert "GS506" not in codes(SPECS["v9"], {"M": 37 * 512, "N": 4096})


def test_one_wave_has_no_next_tile_to_compute_meanwhile() -> None:
    assert "GS505" in codes(SPECS["v8"])
    assert "GS505" not in codes(SPECS["v8"], {"M": 256, "N": 256})
