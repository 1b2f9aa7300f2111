"""`gemmspec fmt`: write specs in the one layout."""

from __future__ import annotations

from collections.abc import Iterator

import click

from gemmspec.cli.options import color_option, read_specs, specs_argument
from gemmspec.cli.output import complain, say, wants_colour
from gemmspec.source import SourceFile

_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}


@click.command("fmt")
@specs_argument
@click.option("--check", "dry", is_flag=True, help="Write nothing; end with status 1 where a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; print what would change, and end with status 1 if anything.")
@color_option
def command(specs: tuple[str, ...], dry: bool, diff: bool, color: str) -> int:
    """Write specs in the one layout. Comments stay; standard input goes to standard output."""
    from gemmspec.files import STDIN, atomic_write
    from gemmspec.report import text
    from gemmspec.syntax.format import format_source
    from gemmspec.syntax.parse import parse

    sources, complete = read_specs(specs)
    changed = broken = 0
    for source in sources:
        _, diagnostics = parse(source)
        if diagnostics:
            from gemmspec.diagnostics import Report

            # What cannot be read cannot be laid out without a risk of losing some of it.
            complain(f"{source.name} is left as it is, because parts of it cannot be read")
            say(text.render([Report(source, tuple(diagnostics))], colour=wants_colour(color)))
            broken += 1
            continue
        formatted = format_source(source)
        piped = source.name == "<stdin>" and STDIN in specs
        if piped and not (dry or diff):
            say(formatted)
        elif formatted != source.text:
            changed += 1
            if diff:
                say("".join(_difference(source, formatted, wants_colour(color))))
            elif dry:
                say(f"would rewrite {source.name}\n")
            else:
                atomic_write(source.name, formatted)
                say(f"rewrote {source.name}\n")
    if not complete:
        return 2
    return int(bool(broken or (changed and (dry or diff))))


def _difference(source: SourceFile, formatted: str, colour: bool) -> Iterator[str]:
    import difflib

    old, new = source.text.splitlines(keepends=True), formatted.splitlines(keepends=True)
    for line in difflib.unified_diff(old, new, source.name, source.name):
        ended = line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
        code = _COLOURS.get(line[0]) if colour else None
        yield f"{code}{ended[:-1]}\x1b[0m\n" if code else ended
