"""`gemmspec show`: print a spec with every value filled in, and what it comes to."""

from __future__ import annotations

import click

from gemmspec.cli.options import color_option, read_specs, size_option, spec_argument, target_option
from gemmspec.cli.output import complain, say, wants_colour
from gemmspec.targets import Target


@click.command("show")
@spec_argument
@size_option
@target_option
@click.option("--protocol", "exact", is_flag=True, help="Print instead every action of every role, fences included.")
@color_option
def command(spec: str, sizes: dict[str, int], target: Target | None, exact: bool, color: str) -> int:
    """Print a spec with every value filled in, the program of each role, and maps of memory.

    What it prints is a spec again. Errors of the protocol do not keep it from printing.
    """
    from gemmspec.driver import check
    from gemmspec.report import maps, protocol, text
    from gemmspec.report import spec as full
    from gemmspec.source import SourceFile
    from gemmspec.syntax.format import format_source

    sources, complete = read_specs([spec])
    if len(sources) > 1:
        raise click.UsageError("only one spec can be shown at a time")
    if not complete:
        return 2
    checked = check(sources[0], sizes, target)
    if checked.protocol is None:
        say(text.render([checked.report], colour=wants_colour(color)))
        return 1
    if exact:
        say(protocol.protocol_text(checked.protocol) + "\n")
    else:
        shown = f"{maps.maps_text(checked.protocol.spec)}\n{full.spec_text(checked.protocol)}\n"
        say(format_source(SourceFile(sources[0].name, shown)))
    if checked.report.errors:
        complain(f"{spec} has errors: `gemmspec lint {spec}` says which")
        return 1
    return 0
