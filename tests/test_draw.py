"""Pictures: well formed, within their bounds, in the palette; traces that Perfetto takes."""

from __future__ import annotations

import itertools
import json
import re
import runpy
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from gemmspec import cli
from gemmspec.draw import graph_svg, palette, timeline_html, timeline_svg, timeline_trace
from gemmspec.draw.canvas import CHARACTER
from gemmspec.draw.timeline import merged
from gemmspec.driver import check
from gemmspec.protocol import Protocol
from gemmspec.source import SourceFile
from gemmspec.timing import Prediction, predict
from gemmspec.timing.outcome import Kind

ROOT = Path(__file__).parent.parent
SVG = "{http://www.w3.org/2000/svg}"
OKABE_ITO = {"#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"}
GOOD = sorted((ROOT / "gemmspec" / "rules").rglob("*.good.gemmspec"))
ODD = """\
kernel odd
target sm_100a
gemm   D[M, N] f16 = A[M, K] f16 @ B[N, K]^T f16
sizes  M = 512, N = 512, K = 512
block  128 x 128 x 64
stages 14
role loader = tma on warpgroup 1 warp 3
role consumer = mma on warpgroup 1 warp 0
role writeback = epilogue on warpgroup 0 chunk 64
barrier full [stages] loader -> consumer
barrier empty [stages] consumer -> loader
barrier sum [1] consumer -> writeback
barrier room [1] writeback -> consumer
"""


def protocol_of(name: str) -> Protocol:
    checked = check(SourceFile(name, (ROOT / "specs" / f"{name}.gemmspec").read_text(encoding="utf-8")))
    assert checked.protocol is not None
    return checked.protocol


@pytest.fixture(scope="module", params=["v7", "v8", "v9"])
def prediction(request: pytest.FixtureRequest) -> Prediction:
    return predict(protocol_of(request.param), {"M": 2048, "N": 2048, "K": 1024}, timeline=True)


def check_picture(svg: str) -> ET.Element:
    """Check that all of a picture lies on its sheet, and that it has a title for those who cannot see it."""
    root = ET.fromstring(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for rect in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        assert w >= 0 and h >= 0
        assert x >= -0.1 and y >= -0.1 and x + w <= width + 0.1 and y + h <= height + 0.1
    for words in root.iter(f"{SVG}text"):
        size, anchor = float(words.attrib["font-size"]), words.attrib.get("text-anchor", "start")
        assert size >= 9
        long = len("".join(words.itertext())) * size * CHARACTER * 0.93
        left = float(words.attrib["x"]) - {"start": 0, "middle": long / 2, "end": long}[anchor]
        assert left >= -1 and left + long <= width + 4, "".join(words.itertext())
        assert 0 < float(words.attrib["y"]) <= height
    assert root.find(f"{SVG}title") is not None
    return root


def test_a_timeline_is_1200_pixels_wide_and_says_what_it_shows(prediction: Prediction) -> None:
    root = check_picture(timeline_svg(prediction))
    assert float(root.attrib["width"]) == 1200
    said = ["".join(t.itertext()) for t in root.iter(f"{SVG}text")]
    assert all(kind.value in said for kind in Kind)
    assert {"whole kernel", "start"} <= set(said)
    assert "tensor core" in said and "producer" in said and "loads, stage 0" in said
    fills = {r.attrib["fill"] for r in root.iter(f"{SVG}rect")}
    assert fills >= {palette.fill_of(kind) for kind in Kind}


def test_colours_are_those_of_okabe_and_ito_and_text_on_them_can_be_read() -> None:
    fills = {palette.fill_of(kind) for kind in Kind}
    assert len(fills) == len(Kind)
    assert fills - {palette.GREY} <= OKABE_ITO
    assert palette.ink_on(palette.YELLOW) == "#000000"
    assert palette.ink_on(palette.BLUE) == "#ffffff"


def test_an_engine_does_one_thing_at_a_time(prediction: Prediction) -> None:
    for kind in (Kind.MMA, Kind.STORE):
        blocks = sorted((b for b in prediction.blocks if b.kind is kind), key=lambda b: (b.lane.cta, b.start))
        assert blocks
        for one, other in itertools.pairwise(blocks):
            assert one.lane.cta != other.lane.cta or one.end <= other.start + 1e-6


def test_a_stage_is_loaded_again_only_when_it_has_been_read(prediction: Prediction) -> None:
    stages: dict[int, list[tuple[float, Kind]]] = {}
    for block in prediction.blocks:
        if block.lane.cta == 0 and block.kind in (Kind.LOAD_B, Kind.MMA):
            stage = block.lane.row if block.lane.row is not None else int(block.text.rpartition(":")[2])
            stages.setdefault(stage, []).append((block.end if block.kind is Kind.MMA else block.start, block.kind))
    for events in stages.values():
        order = [kind for _, kind in sorted(events, key=lambda e: e[0])]
        consumers = max(order.count(Kind.MMA) // order.count(Kind.LOAD_B), 1)
        assert order == [Kind.LOAD_B, *[Kind.MMA] * consumers] * order.count(Kind.LOAD_B)


def test_a_trace_is_one_that_perfetto_takes(prediction: Prediction) -> None:
    trace = json.loads(timeline_trace(prediction))
    events: list[dict[str, Any]] = trace["traceEvents"]
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    blocks = [e for e in events if e["ph"] == "X"]
    assert len(blocks) == len(merged(prediction.blocks))
    tracks: dict[int, list[tuple[float, float]]] = {}
    for e in blocks:
        tracks.setdefault(e["tid"], []).append((e["ts"], e["ts"] + e["dur"]))
    for spans in tracks.values():
        # Perfetto draws slices of a thread that overlap without lying in each other wrongly.
        assert all(one[1] <= other[0] + 0.001 for one, other in itertools.pairwise(sorted(spans)))
    assert {(e["pid"], e["tid"]) for e in blocks} <= named
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in blocks)
    assert max(e["ts"] + e["dur"] for e in blocks) <= trace["otherData"]["milliseconds"] * 1e3


def test_a_page_needs_nothing_else(prediction: Prediction) -> None:
    page = timeline_html(prediction)
    assert not re.search(r"@[A-Z]+@|(?:src|href)=|https?://", page)
    assert page.count("</script>") == 1
    data = json.loads(re.search(r"^const data = (.*);$", page, re.MULTILINE)[1].replace("<\\/", "</"))  # type: ignore[index]
    assert len(data["blocks"]) == len(merged(prediction.blocks))


@pytest.mark.parametrize("path", [*(ROOT / "specs").glob("*.gemmspec"), *GOOD[::3]], ids=lambda path: path.name)
def test_every_spec_has_a_graph(path: Path) -> None:
    protocol = check(SourceFile("a", path.read_text(encoding="utf-8"))).protocol
    assert protocol is not None
    root = check_picture(graph_svg(protocol))
    said = ["".join(t.itertext()) for t in root.iter(f"{SVG}text")]
    for barrier in protocol.barriers:
        assert barrier.name in said
        assert any(f"phase {barrier.phase}" in words for words in said)
        assert any(f"via {barrier.via.value}, {barrier.arrivals} arrival" in words for words in said)
    for program in protocol.programs:
        assert program.role.name in said


@pytest.mark.parametrize("name", ["hopper_split2_n128_dynamic", "hopper_split4_n64_dynamic"])
def test_a_role_that_waits_for_itself_has_a_ring_with_room_of_its_own(name: str) -> None:
    root = check_picture(graph_svg(protocol_of(name)))
    edge = max(float(r.attrib["x"]) + float(r.attrib["width"]) for r in root.iter(f"{SVG}rect") if "rx" in r.attrib)
    drawn = {path.findtext(f"{SVG}title"): path.attrib["d"] for path in root.iter(f"{SVG}path")}
    arrows = (drawn[f"{barrier}: math -> math"] for barrier in ("part2sum", "sum2part"))
    above, below = ([float(n) for n in re.findall(r"[-\d.]+", arrow)] for arrow in arrows)
    for (x0, y0, x1, _, x2, _, x3, y3), side in ((above, -1), (below, 1)):
        # At half its way a Bezier curve is at 3/8 of both bends and 1/8 of both ends.
        assert (x0 + 3 * x1 + 3 * x2 + x3) / 8 > edge + 200, "wide"
        assert x0 == edge < x3, "from the box and back to it"
        assert (y0 - y3) * side > 0, "out near the corner, in further inside"
    slots = [r for r in root.iter(f"{SVG}rect") if float(r.attrib["x"]) > edge]
    assert len(slots) == 2
    assert all(above[-1] < float(r.attrib["y"]) < float(r.attrib["y"]) + 17 < below[-1] for r in slots)
    labels = [t for t in root.iter(f"{SVG}text") if "".join(t.itertext()).endswith("multicast peers")]
    assert len(labels) == 2
    box = next(r for r in root.iter(f"{SVG}rect") if "rx" in r.attrib)
    top, bottom = float(box.attrib["y"]), float(box.attrib["y"]) + float(box.attrib["height"])
    for words in labels:
        assert float(words.attrib["x"]) > edge + 100
        assert not top < float(words.attrib["y"]) < bottom + 12, "no box covers it"


def test_many_slots_are_not_all_drawn() -> None:
    protocol = check(SourceFile("a", ODD)).protocol
    assert protocol is not None
    said = ["".join(t.itertext()) for t in check_picture(graph_svg(protocol)).iter(f"{SVG}text")]
    assert "14 slots (stages)" in said and "..." in said


def test_pictures_of_the_documentation_are_fresh() -> None:
    stale = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["stale"]()
    assert stale == [], "run `python docs/pictures.py`"


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> object:
    monkeypatch.setattr("sys.argv", ["gemmspec", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


@pytest.mark.parametrize("suffix", ["svg", "html", "json"])
def test_simulate_writes_a_timeline(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"out.{suffix}"
    spec = str(ROOT / "specs" / "v9.gemmspec")
    assert run(monkeypatch, "simulate", spec, "--size", "K=512", "--timeline", str(out), "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["device"] == "B200"
    assert out.stat().st_size > 1000


def test_simulate_refuses_other_pictures_and_hanging_pipelines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = ROOT / "specs" / "v9.gemmspec"
    assert run(monkeypatch, "simulate", str(spec), "--timeline", "out.png") == 2
    assert ".svg, .html, .json" in capsys.readouterr().err
    broken = tmp_path / "broken.gemmspec"
    broken.write_text(spec.read_text().replace("arrivals 2    phase 1", "arrivals 2    phase 0"))
    out = tmp_path / "out.svg"
    assert run(monkeypatch, "simulate", str(broken), "--timeline", str(out)) == 1
    assert run(monkeypatch, "simulate", str(broken), "--timeline", str(out), "--force") == 1
    assert "never ends" in capsys.readouterr().err
    assert not out.exists()


def test_graph_writes_a_file_or_to_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, out = str(ROOT / "specs" / "v7.gemmspec"), tmp_path / "g.svg"
    assert run(monkeypatch, "graph", spec, "-o", str(out)) == 0
    assert run(monkeypatch, "graph", spec) == 0
    assert capsys.readouterr().out == f"wrote {out}\n" + out.read_text(encoding="utf-8")
    assert run(monkeypatch, "graph", spec, "-o", str(tmp_path / "no" / "g.svg")) == 2


def test_graph_refuses_other_pictures_and_says_that_it_draws_a_spec_with_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = ROOT / "specs" / "v9.gemmspec"
    png, out, broken = tmp_path / "g.png", tmp_path / "g.svg", tmp_path / "broken.gemmspec"
    assert run(monkeypatch, "graph", str(spec), "-o", str(png)) == 2
    assert "graph writes .svg" in capsys.readouterr().err and not png.exists()
    broken.write_text(spec.read_text().replace("arrivals 2    phase 1", "arrivals 3    phase 1"))
    assert run(monkeypatch, "graph", str(broken), "-o", str(out)) == 1
    said = capsys.readouterr()
    assert said.out == f"wrote {out}\n" and "is drawn, but has errors" in said.err
    check_picture(out.read_text(encoding="utf-8"))


def test_simulate_says_where_its_timeline_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.svg"
    assert run(monkeypatch, "simulate", str(ROOT / "specs" / "v9.gemmspec"), "--timeline", str(out)) == 0
    assert capsys.readouterr().out.endswith(f"\nwrote {out}\n")
