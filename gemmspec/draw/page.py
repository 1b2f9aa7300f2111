"""The timeline as one HTML page that needs nothing else: all CTAs, to zoom into and to scroll along."""

from __future__ import annotations

import html
import json
from pathlib import Path

from gemmspec.draw.palette import fill_of, ink_on
from gemmspec.draw.timeline import heading, lanes_of, merged
from gemmspec.timing.outcome import Kind, Prediction
from gemmspec.timing.report import text

_TEMPLATE = Path(__file__).with_name("page.html")


def timeline_html(prediction: Prediction) -> str:
    """Return the page."""
    lanes = lanes_of(prediction, prediction.blocks)
    number = {lane: i for i, lane in enumerate(lanes)}
    kinds = list(Kind)
    data = {
        "us": 1e-3 / prediction.ghz,
        "kinds": [{"name": k.value, "fill": fill_of(k), "ink": ink_on(fill_of(k))} for k in kinds],
        "lanes": [
            {"cta": lane.cta, "name": lane.name if lane.row is None else f"{lane.name}, stage {lane.row}"}
            for lane in lanes
        ],
        "blocks": [
            [number[b.lane], kinds.index(b.kind), round(b.start), round(b.end), b.text, b.detail, b.tile]
            for b in merged(prediction.blocks)
        ],
    }
    # `</` would end the script; JSON may write it as `<\/`.
    packed = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    page = _TEMPLATE.read_text(encoding="utf-8")
    fields = {"TITLE": html.escape(heading(prediction)), "REPORT": html.escape(text(prediction)), "DATA": packed}
    for name, value in fields.items():
        page = page.replace(f"@{name}@", value)
    return page
