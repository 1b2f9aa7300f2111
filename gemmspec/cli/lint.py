"""`gemmspec lint`: say what is wrong with specs, and mend it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from gemmspec.cli.options import color_option, read_specs, size_option, specs_argument, target_option
from gemmspec.cli.output import complain, say, wants_colour
from gemmspec.targets import Target

if TYPE_CHECKING:
    from gemmspec.diagnostics import Report
    from gemmspec.source import SourceFile

FORMATS = ["text", "json", "sarif", "github"]


@click.command("lint")
@specs_argument
@click.option("--advice", is_flag=True, help="Say what could be better, too: slower, and no finding.")
@click.option("--fix", is_flag=True, help="Make the edits that are safe, and say what is left.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: also those that may change the meaning.")
@click.option("--diff", is_flag=True, help="Write nothing; print what --fix would change.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--statistics", is_flag=True, help="Count the findings of each rule in place of showing them.")
@size_option
@target_option
@color_option
def command(
    specs: tuple[str, ...],
    advice: bool,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    form: str,
    statistics: bool,
    sizes: dict[str, int],
    target: Target | None,
    color: str,
) -> int:
    """Say what is wrong with specs.

    Ends with status 1 where there are errors or warnings: with --fix, where some are left; with --diff, where something
    would change, too. Advice is no finding. What --fix makes of standard input goes to standard output.
    """
    from gemmspec.diagnostics import Severity
    from gemmspec.driver import check
    from gemmspec.files import STDIN

    if statistics and form != "text":
        raise click.UsageError("--statistics goes with --format text")
    if unsafe_fixes and not (fix or diff):
        raise click.UsageError("--unsafe-fixes goes with --fix or --diff")

    def report(source: SourceFile) -> Report:
        checked = check(source, sizes, target, advice=advice)
        if checked.report.ok and not checked.report.diagnostics:
            return checked.report
        from gemmspec.mend import with_fixes

        return with_fixes(checked, lambda s: check(s, sizes, target))

    sources, complete = read_specs(specs)
    changed, piped = False, diff or (fix and STDIN in specs)
    if fix or diff:
        reports: list[Report] = []
        for source in sources:
            reports.append(_mend(source, report, unsafe_fixes, diff, wants_colour(color)))
            changed = changed or reports[-1].source.text != source.text
    else:
        reports = [report(source) for source in sources]
    if reports or form != "text":
        text = _rendered(reports, form, statistics, wants_colour(color) and not piped)
        if piped:
            print(text, end="", file=sys.stderr)
        else:
            say(text)
    if not complete:
        return 2
    found = any(d.severity is not Severity.ADVICE for r in reports for d in r.diagnostics)
    return int(found or (diff and changed))


def _mend(source: SourceFile, check: Callable[[SourceFile], Report], unsafe: bool, diff: bool, colour: bool) -> Report:
    """Make the fixes of one source, and show or write what became of it; return what is left to say."""
    from gemmspec.cli import fixes
    from gemmspec.files import STDIN, atomic_write, shown_name

    mended = fixes.mend(source, check, unsafe=unsafe)
    text = mended.report.source.text
    if diff:
        say(fixes.difference(source.name, source.text, text, colour))
    elif source.name == shown_name(STDIN):
        say(text)
    elif text != source.text:
        atomic_write(source.name, text)
    if text != source.text:
        verb = "would make" if diff else "made"
        complain(f"{source.name}: {verb} {mended.made} fix{'es' if mended.made > 1 else ''}")
    return mended.report


def _rendered(reports: Sequence[Report], form: str, statistics: bool, colour: bool) -> str:
    """Return the reports in a format."""
    from gemmspec.report import text

    if form == "text" and not statistics:
        return text.render(reports, colour=colour)
    from gemmspec.rules import RULES

    names = {rule.code: rule.name for rule in RULES}
    match form:
        case "json":
            from gemmspec.report import json

            return json.render(reports, names)
        case "sarif":
            from gemmspec.report import sarif
            from gemmspec.version import __version__

            return sarif.render(reports, RULES, __version__)
        case "github":
            from gemmspec.report import github

            return github.render(reports, names)
        case _:
            return text.statistics(reports, names)
