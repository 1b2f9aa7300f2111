"""A sheet to draw on. The only importer of drawsvg, which has no types."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from gemmspec.draw.palette import INK, PAPER

FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
# Widths of a character, in font sizes: for fitting words only, so the widest common font counts.
CHARACTER = 0.62


class Canvas:
    """Coordinates are pixels from the top left."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self._svg: Any = importlib.import_module("drawsvg")
        self.width = width
        self._drawing: Any = self._svg.Drawing(width, height, font_family=FONT)
        self._drawing.append_title(title)
        self.rect(0, 0, width, height, PAPER)
        self._clip: Any = None

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, *, stroke: str = "none", tip: str = "",
        radius: float = 0.0, line: float = 1.0,
    ) -> None:  # fmt: skip
        """Draw a rectangle; `tip` is shown where the mouse rests on it."""
        shape: Any = self._svg.Rectangle(
            _short(x), _short(y), _short(width), _short(height), fill=fill, **_line(stroke, line), **_radius(radius)
        )
        if tip:
            shape.append_title(tip)
        self._drawing.append(shape)

    def text(
        self, words: str, x: float, y: float, size: float, *, fill: str = INK, anchor: str = "start",
        bold: bool = False,
    ) -> None:  # fmt: skip
        """Write a line; `y` is its base line, and `anchor` the point of it that is at `x`."""
        more: dict[str, Any] = {"font_weight": "bold"} if bold else {}
        if anchor != "start":
            more["text_anchor"] = anchor
        self._drawing.append(self._svg.Text(words, size, _short(x), _short(y), fill=fill, **more))

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str, *, width: float = 1.0) -> None:
        """Draw a straight line."""
        self._drawing.append(
            self._svg.Line(_short(x1), _short(y1), _short(x2), _short(y2), stroke=stroke, stroke_width=width)
        )

    def curve(
        self, start: tuple[float, float], bends: Sequence[float], end: tuple[float, float], stroke: str, *,
        dashed: bool = False, tip: str = "",
    ) -> None:  # fmt: skip
        """Draw a Bezier curve with an arrow head at its end; `bends`: x1, y1, x2, y2 of its control points."""
        svg = self._svg
        head: Any = svg.Marker(-0.2, -0.5, 1, 0.5, scale=8, orient="auto")
        head.append(svg.Lines(-0.2, -0.45, -0.2, 0.45, 0.9, 0, fill=stroke, close=True))
        more: dict[str, Any] = {"stroke_dasharray": "7,4"} if dashed else {}
        path: Any = svg.Path(stroke=stroke, stroke_width=2.2, fill="none", marker_end=head, **more)
        path.M(*start).C(*bends, *end)
        if tip:
            path.append_title(tip)
        self._drawing.append(path)

    def svg(self) -> str:
        """Return the sheet as SVG text, the same for the same strokes."""
        return f"{self._drawing.as_svg()}\n"


def fits(words: str, size: float, width: float) -> bool:
    """Say whether a line of text is no wider than that."""
    return len(words) * size * CHARACTER <= width


def _short(number: float) -> float:
    """Round to what can be seen, so that files stay small."""
    return round(number, 1)


def _line(stroke: str, width: float) -> dict[str, Any]:
    return {} if stroke == "none" else {"stroke": stroke, "stroke_width": width}


def _radius(radius: float) -> dict[str, Any]:
    return {"rx": radius} if radius else {}
