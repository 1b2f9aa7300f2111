"""`gemmspec compile`: write the kernel of each spec."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import click

from gemmspec.cli.options import color_option, read_specs, size_option, specs_argument, target_option
from gemmspec.cli.output import complain, say, wants_colour
from gemmspec.source import SourceFile
from gemmspec.targets import Target

if TYPE_CHECKING:
    from pathlib import Path

    from gemmspec.driver import Checked
    from gemmspec.toolchain import Artifact

_USUAL = ("tirx", "cuda", "cubin")
_KINDS = (*_USUAL, "c", "lib")


def _emit(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(word.strip() for word in value.split(",")))
    for word in words:
        if word not in _KINDS:
            raise click.BadParameter(f"`{word}` is none of {', '.join(_KINDS)}", ctx, param)
    return words


def _seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    from gemmspec.waits import LEAST_SECONDS, MOST_SECONDS

    try:
        seconds = float(value)
    except ValueError:
        raise click.BadParameter(
            f"`{value}` is no number of seconds (a spec goes ahead of the option, or write --debug-waits=2)", ctx, param
        ) from None
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        least, most = f"{LEAST_SECONDS:g}", f"{MOST_SECONDS:g}"
        raise click.BadParameter(f"{value} seconds, and a wait may be bounded by {least} to {most} seconds", ctx, param)
    return seconds


class _Compile(click.Command):
    """The command; a negative number of seconds reaches its check, rather than be taken for an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for arg, following in pairwise([*args, ""]):
            name, _, value = arg.partition("=")
            value = value or following
            if name == "--debug-waits" and value.startswith("-") and value[1:2].isdigit():
                _seconds(ctx, next(p for p in self.params if p.name == "debug_waits"), value)
        return super().parse_args(ctx, args)


@click.command("compile", cls=_Compile)
@specs_argument
@size_option
@target_option
@click.option("--out", "folder", default="build", show_default=True, metavar="DIR", help="Where to write.")
@click.option(
    "--emit",
    default=",".join(_USUAL),
    show_default=True,
    metavar="LIST",
    callback=_emit,
    help="What to make: the TIRx module always, CUDA text, cubin, C with the cubin in it, shared library.",
)
@click.option(
    "--debug-waits",
    is_flag=False,
    flag_value="2",
    metavar="[SECONDS]",
    callback=_seconds,
    help="A debug build: a wait gives up after so many seconds (2), and the runtime says who waits for whom.",
)
@click.option("--force", is_flag=True, help="Generate code for a spec with errors, to try a finding elsewhere.")
@color_option
def command(
    specs: tuple[str, ...],
    sizes: dict[str, int],
    target: Target | None,
    folder: str,
    emit: tuple[str, ...],
    debug_waits: float | None,
    force: bool,
    color: str,
) -> int:
    """Write the kernel of each spec: NAME.py (TIRx), NAME.cu, NAME.cubin, NAME.json (what a launch needs).

    With --emit c,lib also NAME.c, NAME.h, NAME_example.c and NAME.so, which need libcuda.so.1 and nothing else.
    A spec with errors is not compiled. What is written was read back and compared with what was proved.
    """
    if debug_waits is not None and {"c", "lib"} & set(emit):
        complain(
            "gemmspec's runtime reads what --debug-waits writes down, and C does not: leave c and lib out of --emit"
        )
        return 2
    sources, complete = read_specs(specs)
    status = 0 if complete else 2
    written: dict[str, str] = {}
    for source in sources:
        status = max(status, _compile(source, sizes, target, folder, emit, debug_waits, force, color, written))
    return status


def _compile(
    source: SourceFile,
    sizes: dict[str, int],
    target: Target | None,
    folder: str,
    emit: tuple[str, ...],
    debug_waits: float | None,
    force: bool,
    color: str,
    written: dict[str, str],
) -> int:
    from gemmspec.driver import check

    checked = check(source, sizes, target)
    _show(checked, color)
    if checked.protocol is None or not (checked.report.ok or force):
        return 1
    name = checked.protocol.spec.name
    if name in written:
        complain(f"{source.name}: kernel `{name}` is that of {written[name]} too, and would be written over it")
        return 2
    written[name] = source.name
    if not checked.report.ok:
        if debug_waits is not None and (stuck := _stuck_elsewhere(checked)):
            complain(f"{source.name}: debug waits bound waits on barriers, and with {stuck} it may hang elsewhere")
            return 1
        what = "it may hang a GPU" if debug_waits is None else "its waits give up, but what it computes may be wrong"
        complain(f"{source.name}: WARNING: this kernel is made from a spec with errors; {what}")
    from gemmspec.toolchain.start import quick_tvm

    quick_tvm()
    from gemmspec.toolchain import BuildProblem, Emit, build

    try:
        in_c = {"c", "lib"} & set(emit)
        kinds = {Emit(word) for word in emit if word in _USUAL} | ({Emit.CUBIN} if in_c else set[Emit]())
        artifact = build(checked.protocol, source.text, kinds, debug_waits=debug_waits, spec_name=source.name)
        if not checked.report.ok:
            codes = ", ".join(dict.fromkeys(d.code for d in checked.report.errors))
            artifact = artifact.stamped(f"UNSOUND: made by --force from a spec with errors ({codes}).")
        more = _in_c(artifact, "lib" in emit) if in_c else {}
    except BuildProblem as problem:
        complain(f"{source.name}: {problem}{_keep(problem.log, folder, name)}")
        return 2 if problem.missing_tool else 1
    from pathlib import Path

    from gemmspec.toolchain.output import write_together

    paths = write_together(Path(folder), {**artifact.files(), **more})
    say(_summary(artifact, paths))
    return 0


def _stuck_elsewhere(checked: Checked) -> str:
    """Return the errors that are not about barriers and the memory that they guard: registers, warps, shapes."""
    from gemmspec.waits import MAY_HANG_ELSEWHERE

    found = [d.code for d in checked.report.errors if d.code.startswith(MAY_HANG_ELSEWHERE)]
    return ", ".join(dict.fromkeys(found))


def _in_c(artifact: Artifact, library: bool) -> dict[str, str | bytes]:
    """Return the kernel's C files, and its library."""
    from gemmspec.toolchain import BuildProblem
    from gemmspec.toolchain.clib import build_library, write_c

    if artifact.manifest is None or artifact.cubin is None:
        raise BuildProblem(f"a C file holds the cubin, and there is none: {artifact.note}", missing_tool=True)
    sources = write_c(artifact.manifest, artifact.cubin)
    return {**sources, **({f"{artifact.name}.so": build_library(artifact.name, sources)} if library else {})}


def _show(checked: Checked, color: str) -> None:
    if checked.report.diagnostics:
        from gemmspec.report import text

        say(text.render([checked.report], colour=wants_colour(color)))


def _keep(log: str, folder: str, name: str) -> str:
    """Write what a tool said beside where the kernel would be; return the words that tell."""
    if not log:
        return ""
    from pathlib import Path

    from gemmspec.toolchain.output import write_together

    (path,) = write_together(Path(folder), {f"{name}.log": log})
    return f" (all that was said: {path})"


def _summary(artifact: Artifact, paths: tuple[Path, ...]) -> str:
    waits = artifact.manifest.waits if artifact.manifest is not None else None
    lines = [f"{artifact.name}" + (f", a debug build: waits give up after {waits.seconds:g} s" if waits else "")]
    width = max(len(str(path)) for path in paths)
    facts = {".py": f"TIRx, {artifact.tirx.count(chr(10))} lines", ".cu": "CUDA", ".json": "manifest"}
    facts |= {".c": "C", ".h": "C header", ".so": "library, needs libcuda.so.1"}
    assembled = artifact.manifest.assembled if artifact.manifest is not None else None
    if artifact.manifest is not None and assembled is not None:
        spilled = assembled.spill_store_bytes + assembled.spill_load_bytes
        spills = f"{spilled} bytes of spills" if spilled else "no spills"
        shared = artifact.manifest.launch.shared_bytes
        facts[".cubin"] = f"{assembled.registers} registers, {spills}, {shared} bytes of shared memory"
    lines += [f"  {path!s:{width}}  {facts.get(path.suffix, '')}".rstrip() for path in paths]
    if artifact.note:
        lines.append(f"  no cubin: {artifact.note}")
    return "\n".join(lines) + "\n"
