"""`gemmspec lint`: say what is wrong with specs."""

from __future__ import annotations

import click

from gemmspec.cli.options import color_option, read_specs, size_option, specs_argument, target_option
from gemmspec.cli.output import say, wants_colour
from gemmspec.targets import Target


@click.command("lint")
@specs_argument
@click.option("--fix", is_flag=True, help="Make the edits that are safe, and say what is left.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@size_option
@target_option
@color_option
def command(
    specs: tuple[str, ...], fix: bool, form: str, sizes: dict[str, int], target: Target | None, color: str
) -> int:
    """Say what is wrong with specs, and what could be better.

    Ends with status 1 where there are errors or warnings; advice alone is no finding.
    """
    from gemmspec.diagnostics import Severity
    from gemmspec.driver import check

    sources, complete = read_specs(specs)
    if fix:
        from gemmspec.cli.fixes import mend

        sources = [mend(source, lambda s: check(s, sizes, target).report.diagnostics) for source in sources]
    reports = [check(source, sizes, target).report for source in sources]
    if form == "json":
        from gemmspec.report import json
        from gemmspec.rules import RULES

        say(json.render(reports, {rule.code: rule.name for rule in RULES}))
    elif reports:
        from gemmspec.report import text

        say(text.render(reports, colour=wants_colour(color)))
    if not complete:
        return 2
    return int(any(d.severity is not Severity.ADVICE for report in reports for d in report.diagnostics))
