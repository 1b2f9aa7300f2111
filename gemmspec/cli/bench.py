"""`gemmspec bench`: time the kernels of specs beside cuBLAS, on a machine with a GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from gemmspec.cli.options import color_option, read_specs, shape_option, size_option, specs_argument
from gemmspec.cli.output import complain, say, wants_colour

if TYPE_CHECKING:
    from gemmspec.runtime import Kernel
    from gemmspec.runtime.measure import Shape
    from gemmspec.source import SourceFile

_DEFAULT = (4096, 4096, 4096)


@click.command("bench")
@specs_argument
@size_option
@shape_option
@click.option("--rounds", type=click.IntRange(2), default=31, show_default=True, help="Pairs of times with cuBLAS.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--patience",
    type=click.FloatRange(1),
    default=20.0,
    show_default=True,
    help="Seconds without progress until the process is ended.",
)
@color_option
def command(
    specs: tuple[str, ...],
    sizes: dict[str, int],
    shapes: tuple[Shape, ...],
    rounds: int,
    form: str,
    patience: float,
    color: str,
) -> int:
    """Build the kernels of specs, check what they compute, and time them beside torch.matmul (cuBLAS).

    Without --shape, each kernel is measured at its own sizes, and at 4096 for each that it takes at run time. Ends
    with status 1 where a result is wrong, 2 where there is no GPU to measure on.
    """
    from gemmspec.runtime.card import NoGpu, card

    try:
        at_hand = card()
    except NoGpu as problem:
        complain(f"cannot measure here: {problem}")
        return 2
    sources, complete = read_specs(specs)
    kernels, status = _build(sources, sizes, color)
    status = max(status, 0 if complete else 2)
    rows = _measure(kernels, shapes, rounds, patience)
    if form == "json":
        import json

        say(json.dumps({"card": at_hand, "rounds": rounds, "rows": rows}, indent=2) + "\n")
    elif rows:
        say(_table(at_hand, rows, rounds))
    return max(status, int(any(row["fault"] for row in rows)))


def _build(sources: Sequence[SourceFile], sizes: dict[str, int], color: str) -> tuple[dict[str, Kernel], int]:
    """Return the kernels by name, and the status so far."""
    from gemmspec.driver import check
    from gemmspec.report import text
    from gemmspec.runtime import LoadProblem, load
    from gemmspec.toolchain import BuildProblem, build

    kernels: dict[str, Kernel] = {}
    status = 0
    for source in sources:
        checked = check(source, sizes)
        if checked.report.diagnostics:
            print(text.render([checked.report], colour=wants_colour(color)), end="", file=sys.stderr)
        if checked.protocol is None or not checked.report.ok:
            status = max(status, 1)
            continue
        try:
            kernel = load(build(checked.protocol, source.text))
            _for_this_card(kernel)
            if kernel.name in kernels:
                raise LoadProblem(f"kernel `{kernel.name}` is that of another spec, too")
            kernels[kernel.name] = kernel
        except (BuildProblem, LoadProblem) as problem:
            complain(f"{source.name}: {problem}")
            status = 2
    return kernels, status


def _for_this_card(kernel: Kernel) -> None:
    import torch

    kernel.function(torch.cuda.current_device())


def _measure(
    kernels: dict[str, Kernel], shapes: tuple[Shape, ...], rounds: int, patience: float
) -> list[dict[str, Any]]:
    """Return a row for each kernel and shape that it takes, cuBLAS's first."""
    from gemmspec.runtime import ArgumentProblem, DriverProblem, measure
    from gemmspec.runtime.watchdog import Watchdog

    rows: list[dict[str, Any]] = []
    seed = measure.seed_anew()
    watchdog = Watchdog(patience)
    # Kernels of one type are timed together; cuBLAS with each.
    jobs: dict[tuple[Shape, str], dict[str, Kernel]] = {}
    for kernel in kernels.values():
        types = " ".join(tensor.dtype for tensor in kernel.manifest.tensors)
        own = [
            size if size is not None else other
            for size, other in zip(kernel.manifest.sizes.values(), _DEFAULT, strict=True)
        ]
        wanted = [shape for shape in shapes or ((own[0], own[1], own[2]),) if measure.fits(kernel, shape)]
        if not wanted:
            complain(f"kernel `{kernel.name}` takes none of these shapes")
        for shape in wanted:
            jobs.setdefault((shape, types), {})[kernel.name] = kernel
    with _progress(len(jobs)) as advance:
        for (shape, types), group in jobs.items():
            right: dict[str, Kernel] = {}
            for name, kernel in group.items():
                watchdog.beat(f"check {name}")
                try:
                    checked = measure.check(kernel, shape)
                except (ArgumentProblem, DriverProblem) as problem:
                    checked = measure.Checked(float("nan"), str(problem))
                row = {"shape": list(shape), "types": types, "kernel": name, "seed": seed}
                row |= {"error": checked.error, "fault": checked.fault}
                if checked.ok:
                    right[name] = kernel
                rows.append(row)
            timings = measure.race(right, shape, rounds, watchdog.beat) if right else {}
            for row in rows[-len(group) :]:
                _add_time(row, timings.get(row["kernel"]))
            if timings:
                row = {"shape": list(shape), "types": types, "kernel": measure.CUBLAS, "fault": ""}
                _add_time(row, timings[measure.CUBLAS])
                rows.insert(len(rows) - len(group), row)
            advance()
    watchdog.stop()
    return rows


def _add_time(row: dict[str, Any], timing: Any) -> None:
    if timing is not None:
        low, high = timing.spread
        row |= {"ms": timing.ms, "tflops": timing.tflops, "ratio": timing.ratio, "ratio_low": low, "ratio_high": high}


def _table(card: dict[str, Any], rows: list[dict[str, Any]], rounds: int) -> str:
    clocks = ""
    if "sm_mhz" in card:
        clocks = (
            f", SM {card['sm_mhz']} of {card['max_sm_mhz']} MHz, {card['power_limit_w']} W, driver {card['driver']}"
        )
    width = max(len(row["kernel"]) for row in rows)
    what = f"{card['capability']}, {card['sms']} SMs{clocks}"
    lines = [
        f"{card['device']} ({what}), torch {card['torch']}, CUDA {card['cuda']}",
        f"{'M x N x K':>20}  {'':{width}}  {'ms':>9}  {'TFLOP/s':>7}  {'to cuBLAS':>9}  {'quartiles':>13}  error",
    ]
    for row in rows:
        line = f"{' x '.join(map(str, row['shape'])):>20}  {row['kernel']:{width}}"
        if row["fault"]:
            line += f"  WRONG: {row['fault']}"
        else:
            line += f"  {row['ms']:9.4f}  {row['tflops']:7.1f}  {row['ratio']:9.3f}"
            line += f"  {row['ratio_low']:.3f}..{row['ratio_high']:.3f}"
            line += f"  {row['error']:.1e}" if "error" in row else ""
        lines.append(line)
    lines.append(f"times are medians of {rounds} rounds; a ratio is cuBLAS's time over the kernel's, paired by round")
    return "\n".join(lines) + "\n"


@contextmanager
def _progress(total: int) -> Generator[Callable[[], None]]:
    if not (sys.stderr.isatty() and total > 1):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("measuring", total=total)
        yield lambda: bar.advance(task)
