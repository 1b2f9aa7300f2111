"""Draws the pictures of docs/ anew: `python docs/pictures.py`. Changes only those that have changed."""

from __future__ import annotations

from pathlib import Path

from gemmspec.draw import graph_svg, timeline_svg
from gemmspec.driver import check
from gemmspec.source import SourceFile
from gemmspec.timing import predict

DOCS = Path(__file__).parent
TIMELINES, GRAPHS = ("v7", "v8", "v9"), ("v9",)


def pictures() -> dict[Path, str]:
    """Return every picture by its file."""
    drawn: dict[Path, str] = {}
    for name in TIMELINES:
        path = DOCS.parent / "specs" / f"{name}.gemmspec"
        protocol = check(SourceFile(path.name, path.read_text(encoding="utf-8"))).protocol
        assert protocol is not None
        drawn[DOCS / "timeline" / f"{name}.svg"] = timeline_svg(predict(protocol, timeline=True))
        if name in GRAPHS:
            drawn[DOCS / "graph" / f"{name}.svg"] = graph_svg(protocol)
    return drawn


def stale() -> list[str]:
    """Return the files that are not what would be drawn now."""
    return [
        str(path.relative_to(DOCS))
        for path, svg in pictures().items()
        if not path.exists() or path.read_text(encoding="utf-8") != svg
    ]


if __name__ == "__main__":
    for path, svg in pictures().items():
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != svg:
            path.write_text(svg, encoding="utf-8")
            print(f"drew {path.relative_to(DOCS.parent)}")
