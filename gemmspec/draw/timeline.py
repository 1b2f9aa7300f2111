"""The timeline as one SVG, 1200 pixels wide: the whole kernel, its start, and the turn from one tile to the next.

Given a `Prediction` with blocks, draw the lanes of CTA 0: other CTAs do the same (the trace has them all). In a
stage's row, A is above and B below; a block reaches from the issue of a load to its landing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gemmspec.draw.canvas import Canvas, fits
from gemmspec.draw.palette import FAINT, INK, QUIET, fill_of, ink_on
from gemmspec.timing.outcome import Block, Kind, Lane, Prediction

WIDTH, LEFT, RIGHT = 1200, 128, 18
ROW, STAGE_ROW, GAP = 17, 21, 4
TINY, SMALL, NORMAL, LARGE = 9, 10, 11.5, 15
# Zoomed panels show at least this much: a few loads of stages, or a tile's stores.
LEAST_WINDOW = 7000.0
_LOADS = (Kind.LOAD_A, Kind.LOAD_B)


@dataclass(frozen=True, slots=True)
class _Panel:
    title: str
    start: float
    end: float


def timeline_svg(prediction: Prediction) -> str:
    """Return the picture. The prediction must have been made with its timeline."""
    blocks = [b for b in merged(prediction.blocks) if b.lane.cta == 0]
    lanes = lanes_of(prediction, blocks)
    tall = sum(_height(lane) + (GAP if lane.row in (None, 0) else 0) for lane in lanes)
    panels = _panels(prediction, blocks)
    canvas = Canvas(WIDTH, 82 + len(panels) * (tall + 52), heading(prediction))
    canvas.text(heading(prediction), 16, 26, LARGE, bold=True)
    canvas.text(_subtitle(prediction), 16, 44, NORMAL, fill=QUIET)
    _legend(canvas, [k for k in Kind if any(b.kind is k for b in blocks)], 16, 54)
    top = 82.0
    for panel in panels:
        top = _panel(canvas, panel, lanes, blocks, prediction, top)
    return canvas.svg()


def heading(p: Prediction) -> str:
    """Return the result in a line."""
    m, n, k = p.sizes
    return f"{p.kernel} on {p.device} at {m} x {n} x {k}: {p.seconds * 1e3:.3f} ms, {p.tflops:.0f} TFLOP/s (predicted)"


def lanes_of(prediction: Prediction, blocks: Iterable[Block]) -> list[Lane]:
    """Return the lanes of each CTA in the order in which data passes them, roles as in the spec."""
    roles = {waits.role: number for number, waits in enumerate(prediction.waits)}
    engines = {"loads": 0, "tensor core": 2, "stores": 4}
    writers = {b.lane for b in blocks if b.kind in (Kind.READ, Kind.WRITE)}

    def rank(lane: Lane) -> tuple[int, int, int, str, int]:
        group = 3 if lane in writers else engines.get(lane.name, 1)
        return lane.cta, group, roles.get(lane.name.rpartition(" ")[0] or lane.name, 0), lane.name, lane.row or 0

    return sorted({b.lane for b in blocks}, key=rank)


def _subtitle(p: Prediction) -> str:
    waves = (
        f"{p.clusters} clusters, {p.waves} tiles each at most" if p.waves > 1 else f"{p.clusters} clusters, a tile each"
    )
    return (
        f"CTA 0 of one cluster. {waves}. SM clock {p.ghz:.2f} GHz; tensor cores {p.utilisation:.0%} used, "
        f"L2 {p.l2:.0%}, device memory {p.dram:.0%}"
    )


def _panels(p: Prediction, blocks: Sequence[Block]) -> list[_Panel]:
    """Return what to show: all, and where it is of use the start and a turn of tiles, larger."""
    end = max(b.end for b in blocks)
    multiplies = [b for b in blocks if b.kind is Kind.MMA]
    whole = _Panel("whole kernel" if p.replayed == p.waves else f"first {p.replayed} tiles", 0.0, end)
    if not multiplies:
        return [whole]
    width = max(LEAST_WINDOW, 14 * sum(b.end - b.start for b in multiplies[:8]) / 8)
    first = min(b.start for b in blocks)
    turn = max(b.end for b in multiplies if b.tile == 0)
    closing = "from the first tile to the second" if p.replayed > 1 else "end of the tile"
    return [
        whole,
        _Panel("start", first, min(first + width, end)),
        _Panel(closing, max(turn - width / 3, 0.0), min(turn + width, end)),
    ]


def merged(blocks: Sequence[Block]) -> list[Block]:
    """Join the loads of several consumers' A into one block a stage, so that none lie on each other."""
    joined: dict[Lane, Block] = {}
    out: list[Block] = []
    for block in blocks:
        last = joined.get(block.lane)
        if block.kind is not Kind.LOAD_A:
            out.append(block)
        elif last is not None and block.start < last.end:
            both = f"load of A into stage {block.lane.row}"
            joined[block.lane] = replace(last, end=max(last.end, block.end), text="A", detail=both)
        else:
            if last is not None:
                out.append(last)
            joined[block.lane] = block
    return sorted([*out, *joined.values()], key=lambda b: b.start)


def _legend(canvas: Canvas, kinds: Sequence[Kind], x: float, y: float) -> None:
    for kind in kinds:
        canvas.rect(x, y, 14, 11, fill_of(kind))
        canvas.text(kind.value, x + 19, y + 9.5, NORMAL)
        x += 19 + 16 + len(kind.value) * NORMAL * 0.56
    canvas.text("numbers: stage, consumer:stage or chunk", x, y + 9.5, NORMAL, fill=QUIET)


def _height(lane: Lane) -> float:
    return ROW if lane.row is None else STAGE_ROW


def _panel(
    canvas: Canvas, panel: _Panel, lanes: Sequence[Lane], blocks: Sequence[Block], p: Prediction, top: float
) -> float:
    """Draw a panel, and return where the next one begins."""
    canvas.text(panel.title, 16, top + 14, NORMAL + 0.5, bold=True)
    scale = (WIDTH - LEFT - RIGHT) / (panel.end - panel.start)
    y = top + 22
    for lane in lanes:
        if lane.row in (None, 0):
            y += GAP
        name = lane.name if lane.row is None else f"{lane.name}, stage {lane.row}"
        canvas.text(name, LEFT - 8, y + _height(lane) - 4.5, SMALL + 0.5, anchor="end")
        canvas.rect(LEFT, y, WIDTH - LEFT - RIGHT, _height(lane) - 1, "#f5f5f5")
        own = [b for b in blocks if b.lane == lane and b.end > panel.start and b.start < panel.end]
        _lane(canvas, own, panel, scale, y, _height(lane) - 1)
        y += _height(lane)
    _axis(canvas, panel, scale, y + 2, p.ghz)
    return y + 30


def _lane(canvas: Canvas, blocks: Sequence[Block], panel: _Panel, scale: float, y: float, height: float) -> None:
    drawn: dict[Kind, float] = {}
    for block in sorted(blocks, key=lambda b: b.kind is not Kind.WAIT):
        left = LEFT + (max(block.start, panel.start) - panel.start) * scale
        right = LEFT + (min(block.end, panel.end) - panel.start) * scale
        load = block.kind in _LOADS
        tall, at = (height / 2, y + (height / 2 if block.kind is Kind.LOAD_B else 0)) if load else (height, y)
        if right - left < 3:
            # Too many to see: draw what is between the last one and this one as one.
            if right - drawn.get(block.kind, -1.0) < 0.8:
                continue
            drawn[block.kind] = right = max(right, left + 0.8)
        tip = f"{block.detail}, tile {block.tile}: cycle {block.start:.0f} to {block.end:.0f}"
        wide = right - left - (0.6 if right - left > 3 else 0)
        fill = fill_of(block.kind)
        canvas.rect(left, at, wide, tall, fill, tip=tip if wide > 6 else "")
        words, size = str(block.lane.row) if load else _words(block), TINY if load else SMALL
        if words and fits(words, size, wide - (10 if load else 4)):
            base = at + (tall + size * 0.73) / 2
            canvas.text(words, left + wide / 2, base, size, fill=ink_on(fill), anchor="middle")


def _words(block: Block) -> str:
    return block.detail.removeprefix("wait for ") if block.kind is Kind.WAIT else block.text


def _axis(canvas: Canvas, panel: _Panel, scale: float, y: float, ghz: float) -> None:
    """Draw ticks in microseconds."""
    to_us = 1e-3 / ghz
    span = (panel.end - panel.start) * to_us
    step = next(s for s in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 1e4, 1e5, 1e9) if span / s <= 16)
    canvas.line(LEFT, y, WIDTH - RIGHT, y, FAINT)
    tick = -(-panel.start * to_us // step) * step
    while tick <= panel.end * to_us:
        x = LEFT + (tick / to_us - panel.start) * scale
        canvas.line(x, y, x, y + 4, INK)
        label = f"{tick:.1f}" if step < 1 else f"{tick:.0f}"
        canvas.text(f"{label} us" if x < WIDTH - 60 else label, x, y + 14, SMALL, fill=QUIET, anchor="middle")
        tick = round(tick + step, 6)
