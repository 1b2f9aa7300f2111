"""`gemmspec sweep`: which numbers would be faster?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from gemmspec.cli.options import read_specs, size_option, spec_argument, target_option
from gemmspec.cli.output import say
from gemmspec.diagnostics import SizeError
from gemmspec.targets import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gemmspec.sweep import Tried


@click.command("sweep")
@spec_argument
@click.option(
    "--vary",
    "varied",
    multiple=True,
    required=True,
    metavar="NAME=VALUES",
    help="stages=2..6, chunk=32,64, block.n=64..256..64, writeback.release=read,store, M=2048,4096. Several times: "
    "all combinations.",
)
@size_option
@click.option("--jobs", type=click.IntRange(1), help="How many processes; all cores by default.")
@click.option("--dask", metavar="ADDRESS", help="Run on the Dask cluster whose scheduler is there: tcp://host:8786.")
@click.option("--top", type=click.IntRange(1), help="Show only so many of the fastest (text).")
@click.option("--format", "form", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
@target_option
def command(
    spec: str,
    varied: tuple[str, ...],
    sizes: dict[str, int],
    jobs: int | None,
    dask: str | None,
    top: int | None,
    form: str,
    target: Target | None,
) -> int:
    """Lint, predict and rank all combinations of values of a spec's properties.

    Those in which lint finds errors are listed with the codes. Ends with status 1 where none is left.
    """
    from gemmspec import sweep

    sources, complete = read_specs([spec])
    if len(sources) > 1:
        raise click.UsageError("only one spec can be varied at a time")
    if not complete:
        return 2
    source = sources[0]
    try:
        made = sweep.variants(source, [sweep.read_variation(words) for words in varied])
    except sweep.VariationError as error:
        raise click.UsageError(str(error)) from error
    todo = [
        sweep.Job(i, v.values, source.name, v.text, tuple({**sizes, **dict(v.sizes)}.items()), target and target.name)
        for i, v in enumerate(made)
    ]
    tried: list[Tried] = []
    try:
        with _progress(len(todo)) as advance:
            for result in sweep.run_on_dask(todo, dask) if dask else sweep.run_here(todo, jobs):
                tried.append(result)
                advance()
    except SizeError as problem:
        raise click.UsageError(f"size {problem}") from problem
    except sweep.SweepProblem as problem:
        raise click.ClickException(str(problem)) from problem
    fit, rejected = sweep.ranked(tried)
    match form:
        case "json":
            say(_json(fit, rejected))
        case "csv":
            say(_csv(fit, rejected))
        case _:
            say(_text(fit, rejected, top))
    return int(not fit)


def _text(fit: Sequence[Tried], rejected: Sequence[Tried], top: int | None) -> str:
    lines: list[str] = []
    if fit:
        keys = [key for key, _ in fit[0].values]
        rows = [["", *keys, "ms", "TFLOP/s", "tensor cores", "which wait most for"]]
        for i, t in enumerate(fit[:top], start=1):
            values = [value for _, value in t.values]
            rows.append([f"{i}", *values, f"{t.milliseconds:.4f}", f"{t.tflops:.0f}", f"{t.utilisation:.0%}", t.stall])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        for row in rows:
            cells = [c.rjust(w) for c, w in zip(row[:-1], widths, strict=False)]
            lines.append("  ".join([*cells, row[-1]]))
        if top is not None and len(fit) > top:
            lines.append(f"and {len(fit) - top} slower ones")
    if rejected:
        verb = "is" if len(rejected) == 1 else "are"
        lines += ["", f"{len(rejected)} of {len(fit) + len(rejected)} combinations {verb} refused:"]
        for t in rejected:
            values = " ".join(f"{key}={value}" for key, value in t.values)
            lines.append(f"  {values}  " + "; ".join(f"{code} {message}" for code, message in t.codes))
    return "\n".join(lines).lstrip("\n") + "\n"


def _json(fit: Sequence[Tried], rejected: Sequence[Tried]) -> str:
    import json

    def entry(t: Tried) -> dict[str, Any]:
        values = {key: int(value) if value.isdigit() else value for key, value in t.values}
        if t.milliseconds is None:
            return {"values": values, "errors": [{"code": c, "message": m} for c, m in t.codes]}
        return {
            "values": values,
            "milliseconds": t.milliseconds,
            "tflops": t.tflops,
            "utilisation": t.utilisation,
            "stall": t.stall,
        }

    return json.dumps({"ranked": [entry(t) for t in fit], "rejected": [entry(t) for t in rejected]}, indent=2) + "\n"


def _csv(fit: Sequence[Tried], rejected: Sequence[Tried]) -> str:
    import csv
    import io

    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    keys = [key for key, _ in [*fit, *rejected][0].values]
    rows.writerow(["rank", *keys, "milliseconds", "tflops", "utilisation", "stall", "codes"])
    for i, t in enumerate(fit, start=1):
        values = [value for _, value in t.values]
        rows.writerow([i, *values, f"{t.milliseconds:.6f}", f"{t.tflops:.1f}", f"{t.utilisation:.4f}", t.stall, ""])
    for t in rejected:
        codes = " ".join(code for code, _ in t.codes)
        rows.writerow(["", *(value for _, value in t.values), "", "", "", "", codes])
    return out.getvalue()


@contextmanager
def _progress(total: int) -> Generator[Callable[[], None]]:
    """Show a bar on a terminal; give what moves it on by one."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("sweeping", total=total)
        yield lambda: bar.advance(task)
