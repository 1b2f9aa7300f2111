"""Pictures: the timeline of a prediction (SVG, HTML, Chrome trace) and the graph of a spec. See docs/timing.md."""

from gemmspec.draw.graph import graph_svg
from gemmspec.draw.page import timeline_html
from gemmspec.draw.timeline import timeline_svg
from gemmspec.draw.trace import timeline_trace

__all__ = ["graph_svg", "timeline_html", "timeline_svg", "timeline_trace"]
