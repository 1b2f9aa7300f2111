"""What `gemmspec simulate --timeline` does: predict the time, print it, and write the picture."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from gemmspec.cli.output import complain, say
from gemmspec.files import atomic_write

if TYPE_CHECKING:
    from gemmspec.protocol import Protocol
    from gemmspec.timing import Prediction

FORMATS = (".svg", ".html", ".json")


def format_of(path: str) -> str:
    """Return which of FORMATS a path asks for; all others are a usage error."""
    for suffix in FORMATS:
        if path.lower().endswith(suffix):
            return suffix
    raise click.UsageError(f"--timeline writes {', '.join(FORMATS)}; `{path}` ends in none of them")


def write_timeline(protocol: Protocol, sizes: Mapping[str, int], path: str, form: str) -> bool:
    """Predict, write the picture, and print the figures; return False where the pipeline never ends."""
    from gemmspec.draw import timeline_html, timeline_svg, timeline_trace
    from gemmspec.timing import Stuck, predict
    from gemmspec.timing.report import data, text

    draws: dict[str, Callable[[Prediction], str]] = {
        ".svg": timeline_svg,
        ".html": timeline_html,
        ".json": timeline_trace,
    }
    try:
        prediction = predict(protocol, sizes, timeline=True)
    except Stuck:
        complain("the pipeline never ends: `gemmspec lint` says why")
        return False
    atomic_write(path, draws[format_of(path)](prediction))
    say(f"{text(prediction)}wrote {path}\n" if form == "text" else json.dumps(data(prediction), indent=2) + "\n")
    return True
