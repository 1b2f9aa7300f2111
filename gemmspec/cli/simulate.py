"""`gemmspec simulate`: run the pipeline on numbers, with no GPU."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click

from gemmspec.cli.options import color_option, read_specs, size_option, spec_argument, target_option
from gemmspec.cli.output import complain, say, wants_colour
from gemmspec.targets import Target


@click.command("simulate")
@spec_argument
@size_option
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="How many schedules to try.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The first schedule.")
@click.option("--ctas", type=click.IntRange(1), help="Persistent CTAs in place of the spec's; few do many tiles each.")
@click.option("--clusters", type=click.IntRange(1), help="Run only that many clusters, with their share of the tiles.")
@click.option(
    "--timeline",
    metavar="OUT",
    help="Run it in time in place of on numbers: say how long it takes, and draw it into OUT.svg, .html or .json.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--force", is_flag=True, help="Simulate a spec in which lint finds errors, too.")
@target_option
@color_option
def command(
    spec: str,
    sizes: dict[str, int],
    seeds: int,
    seed: int,
    ctas: int | None,
    clusters: int | None,
    timeline: str | None,
    form: str,
    force: bool,
    target: Target | None,
    color: str,
) -> int:
    """Run every role of every CTA on numbers, under adversarial schedules, and compare with a reference.

    Ends with status 1 where a result is wrong or the pipeline stops, and where lint finds errors.
    With --timeline, the time that the target takes is predicted instead; seeds and CTAs play no part in it.
    """
    from gemmspec.cli.timeline import format_of
    from gemmspec.driver import check
    from gemmspec.report import text

    if timeline is not None:
        format_of(timeline)
    sources, complete = read_specs([spec])
    if len(sources) > 1:
        raise click.UsageError("only one spec can be simulated at a time")
    if not complete:
        return 2
    source = sources[0]
    checked = check(source, sizes, target)
    errors = checked.report.errors
    protocol = checked.protocol
    if protocol is None or (errors and not force):
        hint = "; --force simulates all the same" if protocol else ""
        complain(f"lint finds errors in {source.name}, so it is not simulated{hint}")
        if form == "text":
            say(text.render([checked.report], colour=wants_colour(color)))
        return 1
    for error in errors:
        complain(f"{source.name}:{source.position(error.span.start)[0]}: {error.code} {error.message}")

    open_sizes = [s.name for s in protocol.spec.sizes if s.fixed is None and not s.typical and s.name not in sizes]
    if open_sizes:
        given = " ".join(f"--size {name}=512" for name in open_sizes)
        raise click.UsageError(f"{', '.join(open_sizes)}: known at run time only, so say which to simulate: {given}")
    if timeline is not None:
        from gemmspec.cli.timeline import write_timeline

        ended = write_timeline(protocol, sizes, timeline, form)
        return int(bool(errors) or not ended)

    from gemmspec.simulate import prepare, render, simulate
    from gemmspec.simulate.problem import sizes_of

    m, n, k = sizes_of(protocol.spec, sizes)
    _check_memory(m, n, k)
    with _progress(seeds * m * n, form == "text" and clusters is None) as stored:
        problem = prepare(protocol.spec, sizes)
        outcomes = [
            simulate(protocol, sizes, s, ctas=ctas, clusters=clusters, problem=problem, stored=stored)
            for s in range(seed, seed + seeds)
        ]
    if form == "json":
        import json

        say(json.dumps(render.data(outcomes, source), indent=2, allow_nan=False) + "\n")
    else:
        say(render.text(protocol, outcomes, source))
    return int(bool(errors) or not all(o.ok for o in outcomes))


def _check_memory(m: int, n: int, k: int) -> None:
    """Refuse what would not fit: operands, then result, reference and differences, in float32."""
    needed = 4 * (2 * (m * k + n * k) + 5 * m * n)
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there * 3 // 4:
        gib = 1 << 30
        raise click.UsageError(
            f"{m} x {n} x {k} needs about {needed / gib:.0f} GiB of memory, and there are {there / gib:.0f}; "
            "--size M=... takes less"
        )


@contextmanager
def _progress(total: int, wanted: bool) -> Generator[Callable[[int], None]]:
    """Show a bar on a terminal, of elements of D stored; give what counts them."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("simulating", total=total)
        yield lambda elements: bar.advance(task, elements)
