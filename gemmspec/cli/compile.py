"""`gemmspec compile`: write the kernel of each spec."""

from __future__ import annotations

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


@click.command("compile")
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
@click.option("--force", is_flag=True, help="Generate code for a spec with errors, to try a finding elsewhere.")
@color_option
def command(
    specs: tuple[str, ...],
    sizes: dict[str, int],
    target: Target | None,
    folder: str,
    emit: tuple[str, ...],
    force: bool,
    color: str,
) -> int:
    """Write the kernel of each spec: NAME.py (TIRx), NAME.cu, NAME.cubin, NAME.json (what a launch needs).

    With --emit c,lib also NAME.c, NAME.h, NAME_example.c and NAME.so, which need libcuda.so.1 and nothing else.
    A spec with errors is not compiled. What is written was read back and compared with what was proved.
    """
    sources, complete = read_specs(specs)
    status = 0 if complete else 2
    written: dict[str, str] = {}
    for source in sources:
        status = max(status, _compile(source, sizes, target, folder, emit, force, color, written))
    return status


def _compile(
    source: SourceFile,
    sizes: dict[str, int],
    target: Target | None,
    folder: str,
    emit: tuple[str, ...],
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
        complain(f"{source.name}: WARNING: this kernel is made from a spec with errors; it may hang a GPU")
    from gemmspec.toolchain.start import quick_tvm

    quick_tvm()
    from gemmspec.toolchain import BuildProblem, Emit, build

    try:
        in_c = {"c", "lib"} & set(emit)
        kinds = {Emit(word) for word in emit if word in _USUAL} | ({Emit.CUBIN} if in_c else set[Emit]())
        artifact = build(checked.protocol, source.text, kinds)
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
    lines = [f"{artifact.name}"]
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
