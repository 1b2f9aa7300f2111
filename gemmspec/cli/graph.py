"""`gemmspec graph`: draw who waits for whom."""

from __future__ import annotations

import click

from gemmspec.cli.options import color_option, read_specs, size_option, spec_argument, target_option
from gemmspec.cli.output import complain, say, wants_colour
from gemmspec.files import STDIN, atomic_write
from gemmspec.targets import Target


@click.command("graph")
@spec_argument
@click.option("-o", "--output", default=STDIN, help="Write the SVG there; - and by default: to standard output.")
@size_option
@target_option
@color_option
def command(spec: str, output: str, sizes: dict[str, int], target: Target | None, color: str) -> int:
    """Draw roles as nodes and barriers as edges, as SVG.

    A pair of barriers, one for data and one for room, is a ring around its slots. Errors of the protocol do not keep
    it from drawing.
    """
    from gemmspec.draw import graph_svg
    from gemmspec.driver import check
    from gemmspec.report import text

    sources, complete = read_specs([spec])
    if len(sources) > 1:
        raise click.UsageError("only one spec can be drawn at a time")
    if output != STDIN and not output.lower().endswith(".svg"):
        raise click.UsageError(f"graph writes .svg; `{output}` does not end in it")
    if not complete:
        return 2
    checked = check(sources[0], sizes, target)
    if checked.protocol is None:
        complain(f"{sources[0].name} cannot be drawn")
        say(text.render([checked.report], colour=wants_colour(color)))
        return 1
    drawn = graph_svg(checked.protocol)
    if output == STDIN:
        say(drawn)
    else:
        atomic_write(output, drawn)
        say(f"wrote {output}\n")
    if checked.report.errors:
        complain(f"{spec} is drawn, but has errors: `gemmspec lint {spec}` says which")
        return 1
    return 0
