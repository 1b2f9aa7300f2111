"""The timeline in the Chrome trace event format, which Perfetto (https://ui.perfetto.dev) opens."""

from __future__ import annotations

import json
from typing import Any

from gemmspec.draw.timeline import lanes_of
from gemmspec.timing.outcome import Prediction


def timeline_trace(prediction: Prediction) -> str:
    """Return the trace as JSON: a process for each CTA, a thread for each lane, times in microseconds."""
    to_us = 1e-3 / prediction.ghz
    lanes = {lane: number for number, lane in enumerate(lanes_of(prediction, prediction.blocks), start=1)}
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": cta, "args": {"name": f"CTA {cta}"}}
        for cta in sorted({lane.cta for lane in lanes})
    ]
    for lane, number in lanes.items():
        name = lane.name if lane.row is None else f"{lane.name}, stage {lane.row}"
        thread = {"pid": lane.cta, "tid": number}
        events.append({"ph": "M", "name": "thread_name", **thread, "args": {"name": name}})
        events.append({"ph": "M", "name": "thread_sort_index", **thread, "args": {"sort_index": number}})
    for block in prediction.blocks:
        events.append(
            {
                "ph": "X",
                "name": block.detail,
                "cat": block.kind.value,
                "pid": block.lane.cta,
                "tid": lanes[block.lane],
                "ts": round(block.start * to_us, 4),
                "dur": round((block.end - block.start) * to_us, 4),
                "args": {"tile": block.tile, "cycles": round(block.end - block.start)},
            }
        )
    m, n, k = prediction.sizes
    about = {
        "kernel": prediction.kernel,
        "device": prediction.device,
        "sizes": {"M": m, "N": n, "K": k},
        "milliseconds": prediction.seconds * 1e3,
        "tflops": prediction.tflops,
    }
    return (
        json.dumps({"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}, separators=(",", ":")) + "\n"
    )
