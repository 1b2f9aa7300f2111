"""Colours. Those of Okabe and Ito (https://jfly.uni-koeln.de/color/) can be told apart with any colour vision."""

from __future__ import annotations

from typing import assert_never

from gemmspec.timing.outcome import Kind
from gemmspec.vocabulary import Via

INK, QUIET, FAINT, PAPER = "#222222", "#5f5f5f", "#e4e4e4", "#ffffff"
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#c4c4c4"


def fill_of(kind: Kind) -> str:
    """Return the colour of a block."""
    match kind:
        case Kind.LOAD_A:
            return SKY
        case Kind.LOAD_B:
            return BLUE
        case Kind.MMA:
            return VERMILLION
        case Kind.READ:
            return GREEN
        case Kind.WRITE:
            return YELLOW
        case Kind.STORE:
            return PURPLE
        case Kind.WAIT:
            return GREY
        case _:
            assert_never(kind)


def ink_on(fill: str) -> str:
    """Return the colour of text on a colour: whichever of black and white contrasts more (WCAG 2)."""
    red, green, blue = (_linear(int(fill[i : i + 2], 16) / 255) for i in (1, 3, 5))
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#000000" if (light + 0.05) / 0.05 >= 1.05 / (light + 0.05) else "#ffffff"


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def line_of(via: Via) -> str:
    """Return the colour of a barrier's edge."""
    match via:
        case Via.TMA:
            return BLUE
        case Via.COMMIT:
            return VERMILLION
        case Via.THREADS:
            return GREEN
        case Via.ELECTED:
            return PURPLE
        case _:
            assert_never(via)
