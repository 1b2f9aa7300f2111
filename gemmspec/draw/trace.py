"""The timeline in the Chrome trace event format, which Perfetto (https://ui.perfetto.dev) opens."""

from __future__ import annotations

import json
from typing import Any

from gemmspec.draw.timeline import lanes_of, merged
from gemmspec.timing.outcome import Block, Kind, Lane, Prediction


def timeline_trace(prediction: Prediction) -> str:
    """Return the trace as JSON: a process for each CTA, times in microseconds.

    There is a thread for each lane, for loads one for A and one for B, since slices of a thread may not overlap.
    """
    to_us = 1e-3 / prediction.ghz
    blocks = merged(prediction.blocks)
    order = {lane: number for number, lane in enumerate(lanes_of(prediction, blocks))}
    tracks = sorted({_track(b) for b in blocks}, key=lambda track: (order[track[0]], track[1]))
    numbers = {track: number for number, track in enumerate(tracks, start=1)}
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": cta, "args": {"name": f"CTA {cta}"}}
        for cta in sorted({lane.cta for lane in order})
    ]
    for (lane, operand), number in numbers.items():
        name = lane.name if lane.row is None else f"{operand}, stage {lane.row}"
        thread = {"pid": lane.cta, "tid": number}
        events.append({"ph": "M", "name": "thread_name", **thread, "args": {"name": name}})
        events.append({"ph": "M", "name": "thread_sort_index", **thread, "args": {"sort_index": number}})
    for block in blocks:
        events.append(
            {
                "ph": "X",
                "name": block.detail,
                "cat": block.kind.value,
                "pid": block.lane.cta,
                "tid": numbers[_track(block)],
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


def _track(block: Block) -> tuple[Lane, str]:
    return block.lane, block.kind.value if block.kind in (Kind.LOAD_A, Kind.LOAD_B) else ""
