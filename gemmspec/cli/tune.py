"""`gemmspec tune`: which kernel is best for which shape, measured on the machine at hand, and kept in a table."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gemmspec.cli.options import color_option, read_specs, shape_option, size_option
from gemmspec.cli.output import complain, say, wants_colour
from gemmspec.files import SUFFIX, FileProblem, atomic_write, read_bytes, shown_name

if TYPE_CHECKING:
    from gemmspec.protocol.program import Protocol
    from gemmspec.runtime.table import Table
    from gemmspec.runtime.tuning import Candidate, Progress, Tuned
    from gemmspec.source import SourceFile

Shape = tuple[int, int, int]


@click.command("tune")
@click.argument("paths", nargs=-1, required=True, metavar="SPEC_OR_KERNEL...", type=click.Path())
@shape_option
@click.option(
    "--shapes", "shapes_file", metavar="FILE", help="Measure the shapes in a file, too: M N K a line, or CSV."
)
@size_option
@click.option(
    "--db", default="tune.sqlite", show_default=True, metavar="FILE", help="The table: results are kept there."
)
@click.option(
    "--out", "folder", default="build", show_default=True, metavar="DIR", help="Where kernels are compiled to."
)
@click.option("--gpus", default="all", show_default=True, metavar="LIST", help="GPUs to measure on: all, or 0,1.")
@click.option("--rounds", type=click.IntRange(2), default=15, show_default=True, help="Pairs of times with cuBLAS.")
@click.option("--export", metavar="FILE", help="Write what is known of these kernels as JSON, too.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--patience",
    type=click.FloatRange(1),
    default=20.0,
    show_default=True,
    help="Seconds without progress until a kernel is said to hang.",
)
@color_option
def command(
    paths: tuple[str, ...],
    shapes: tuple[Shape, ...],
    shapes_file: str | None,
    sizes: dict[str, int],
    db: str,
    folder: str,
    gpus: str,
    rounds: int,
    export: str | None,
    form: str,
    patience: float,
    color: str,
) -> int:
    """Find the best kernel for each shape: by measurement, on all GPUs of this machine side by side.

    SPEC_OR_KERNEL is a spec, the NAME.json or NAME.cubin of a compiled kernel, or a folder of either. Specs are linted
    and compiled into --out, where the kernel is not there yet. Each kernel is checked at each shape before it is timed.

    Each result is in --db at once, and is not measured again: a run that was killed goes on where it was. What
    gemmspec.runtime.select takes is this file, or its --export. Ends with status 1 where a spec has errors or a result
    is wrong, 2 where there is no GPU.
    """
    wanted = tuple(dict.fromkeys((*shapes, *(_read_shapes(shapes_file) if shapes_file else ()))))
    if not wanted:
        raise click.UsageError("no shape to measure: give --shape 4096x4096x4096, or --shapes FILE")
    specs, artifacts, complete = _sort(paths)
    protocols, status = _lint(specs, sizes, color)
    status = max(status, 0 if complete else 2)
    if not protocols and not artifacts:
        return status
    from gemmspec.runtime.card import NoGpu, count
    from gemmspec.runtime.problem import TableProblem
    from gemmspec.runtime.table import Table
    from gemmspec.runtime.tuning import tune

    try:
        numbers = _numbers(gpus, count())
        table = Table(Path(db))
        candidates, made = _candidates(protocols, artifacts, Path(folder))
        status = max(status, made)
        for candidate in candidates:
            if not any(_takes(candidate, shape) for shape in wanted):
                complain(f"kernel `{candidate.kernel.name}` takes none of these shapes")
        with _progress() as progress:
            from gemmspec.runtime import gpu

            tuned = tune(
                candidates, wanted, table, numbers, gpu.Gpu, rounds=rounds, patience=patience, progress=progress
            )
        status = max(status, _report(tuned, candidates, wanted, table, db, form))
        if export:
            _export(table, tuned, candidates, export)
        table.close()
    except NoGpu as problem:
        complain(f"cannot measure here: {problem}")
        return 2
    except TableProblem as problem:
        complain(str(problem))
        return 2
    if tuned.interrupted:
        complain("interrupted: the same command goes on from here")
        return 130
    return status


def _read_shapes(path: str) -> list[Shape]:
    """Return the shapes in a file: three numbers a line, apart by blanks, commas, semicolons or x; # for remarks."""
    text = read_bytes(path).decode("utf-8-sig", "replace")
    shapes: list[Shape] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = re.split(r"[\s,;x]+", line.partition("#")[0].strip())
        if words == [""] or (not shapes and [word.strip('"').upper() for word in words] == ["M", "N", "K"]):
            continue
        if len(words) != 3 or not all(re.fullmatch(r"[1-9]\d{0,8}", word) for word in words):
            raise FileProblem(f"{shown_name(path)}:{number}: `{line.strip()[:40]}` is no shape: M N K are needed")
        m, n, k = map(int, words)
        shapes.append((m, n, k))
    if not shapes:
        raise FileProblem(f"{shown_name(path)} holds no shape")
    return shapes


def _sort(paths: Sequence[str]) -> tuple[list[SourceFile], list[Path], bool]:
    """Return the specs and the compiled kernels that paths name, and whether all could be read."""
    specs: list[str] = []
    artifacts: dict[Path, None] = {}
    complete = True
    for name in paths:
        path = Path(name)
        if path.is_dir():
            compiled = [p.with_suffix("") for p in sorted(path.glob("*.json")) if p.with_suffix(".cubin").is_file()]
            artifacts.update(dict.fromkeys(compiled))
            if any(path.rglob(f"*{SUFFIX}")):
                specs.append(name)
            elif not compiled:
                complain(f"no *{SUFFIX} file and no compiled kernel in folder {name}")
                complete = False
        elif path.suffix in (".json", ".cubin"):
            artifacts[path.with_suffix("")] = None
        else:
            specs.append(name)
    sources, readable = read_specs(specs) if specs else ([], True)
    return sources, list(artifacts), complete and readable


def _lint(
    sources: Sequence[SourceFile], sizes: dict[str, int], color: str
) -> tuple[list[tuple[SourceFile, Protocol]], int]:
    """Return the specs that are sound, and the status so far; show what is wrong with the others."""
    if not sources:
        return [], 0
    from gemmspec.driver import check
    from gemmspec.report import text

    sound: list[tuple[SourceFile, Protocol]] = []
    status = 0
    for source in sources:
        checked = check(source, sizes)
        if checked.report.diagnostics:
            print(text.render([checked.report], colour=wants_colour(color)), end="", file=sys.stderr)
        if checked.protocol is None or not checked.report.ok:
            codes = ", ".join(dict.fromkeys(d.code for d in checked.report.errors))
            complain(f"{source.name}: not measured, for it has errors ({codes})")
            status = 1
        else:
            sound.append((source, checked.protocol))
    return sound, status


def _candidates(
    protocols: Sequence[tuple[SourceFile, Protocol]], artifacts: Sequence[Path], folder: Path
) -> tuple[list[Candidate], int]:
    """Return all kernels, compiled and loaded, and the status so far."""
    from gemmspec.runtime import LoadProblem, load
    from gemmspec.runtime.tuning import Candidate

    found: dict[str, Candidate] = {}
    status = 0
    todo: list[tuple[str, Path | tuple[SourceFile, Protocol]]] = [(str(path), path) for path in artifacts]
    todo += [(pair[0].name, pair) for pair in protocols]
    for name, what in todo:
        try:
            stem = what if isinstance(what, Path) else _compiled(*what, folder)
            kernel = load(stem)
            other = found.get(kernel.name)
            if other is not None and other.kernel.content != kernel.content:
                raise LoadProblem(f"kernel `{kernel.name}` is another one in {other.path}")
            found.setdefault(kernel.name, Candidate(kernel, str(stem.absolute())))
        except (LoadProblem, FileProblem) as problem:
            complain(f"{name}: {problem}")
            status = 2
    return list(found.values()), status


def _compiled(source: SourceFile, protocol: Protocol, folder: Path) -> Path:
    """Return where the kernel of a spec is, compiled now unless it was made of the same module by this gemmspec."""
    from gemmspec.codegen import lower
    from gemmspec.runtime import LoadProblem

    module = lower(protocol)
    stem = folder / module.name
    if _is_fresh(stem, module.source):
        return stem
    from gemmspec.toolchain import BuildProblem, build

    if sys.stderr.isatty():
        complain(f"compiling {source.name}")
    try:
        artifact = build(protocol, source.text)
    except BuildProblem as problem:
        raise LoadProblem(str(problem)) from problem
    if artifact.cubin is None:
        raise LoadProblem(f"compiled without a cubin: {artifact.note}")
    artifact.write(folder)
    return stem


def _is_fresh(stem: Path, module: str) -> bool:
    import json

    from gemmspec.version import __version__

    try:
        if stem.with_name(f"{stem.name}.py").read_text(encoding="utf-8") != module:
            return False
        manifest = json.loads(stem.with_name(f"{stem.name}.json").read_text(encoding="utf-8"))
        made_by, tile = manifest["gemmspec"], manifest["tile"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return made_by == __version__ and tile is not None and stem.with_name(f"{stem.name}.cubin").is_file()


def _numbers(gpus: str, there: int) -> list[int]:
    """Return the GPUs of `all` or `0,1`."""
    if gpus == "all":
        return list(range(there))
    words = [word.strip() for word in gpus.split(",")]
    for word in words:
        if not re.fullmatch(r"\d{1,4}", word):
            raise click.BadParameter(f"`{gpus}` is neither all nor numbers as in 0,1", param_hint="--gpus")
        if int(word) >= there:
            raise click.BadParameter(f"there is no GPU {word}: torch sees {there}, from 0", param_hint="--gpus")
    return list(dict.fromkeys(map(int, words)))


def _takes(candidate: Candidate, shape: Shape) -> bool:
    from gemmspec.runtime.check import misfit

    return not misfit(candidate.kernel.manifest, shape)


def _report(
    tuned: Tuned, candidates: Sequence[Candidate], shapes: Sequence[Shape], table: Table, db: str, form: str
) -> int:
    """Say what is known now of these kernels at these shapes; return the status."""
    from gemmspec.runtime.summary import as_json, as_text

    contents = {candidate.kernel.content for candidate in candidates}
    found = {
        setting: [r for r in table.results(setting) if r.content in contents and r.shape in shapes]
        for setting in tuned.settings
    }
    for note in tuned.notes:
        complain(note)
    if form == "json":
        say(as_json(found, tuned.measured, tuned.known))
    else:
        say(as_text(found) + f"{tuned.measured} results measured, {tuned.known} were known: {db}\n")
    faults = any(result.fault for results in found.values() for result in results)
    return int(faults or bool(tuned.notes))


def _export(table: Table, tuned: Tuned, candidates: Sequence[Candidate], path: str) -> None:
    from gemmspec.runtime.table import as_json

    contents = {candidate.kernel.content for candidate in candidates}
    rows = [(s, r) for s in tuned.settings for r in table.results(s) if r.content in contents]
    atomic_write(path, as_json(rows))


@contextmanager
def _progress() -> Generator[Progress]:
    """Show a bar on a terminal; give what moves it."""
    if not sys.stderr.isatty():
        yield lambda done, total, doing: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task: Any = bar.add_task("", total=None)

        def move(done: int, total: int, doing: str) -> None:
            bar.update(task, completed=done, total=total, description=doing or None)

        yield move
