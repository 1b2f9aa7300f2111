"""Arguments and options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from gemmspec.cli.output import complain
from gemmspec.files import FileProblem, find_specs, read_bytes, shown_name
from gemmspec.source import SourceFile
from gemmspec.targets import TARGETS, Target

F = TypeVar("F", bound=Callable[..., Any])

_LONGEST_SIZE = 18


def specs_argument(function: F) -> F:
    """Add SPEC..., a tuple of paths that `read_specs` takes."""
    return click.argument("specs", nargs=-1, required=True, metavar="SPEC...", shell_complete=_files)(function)


def spec_argument(function: F) -> F:
    """Add one SPEC."""
    return click.argument("spec", metavar="SPEC", shell_complete=_files)(function)


def size_option(function: F) -> F:
    """Add `--size M=8192`, which gives a dict."""
    option = click.option(
        "--size",
        "sizes",
        multiple=True,
        metavar="NAME=NUMBER",
        callback=_sizes,
        help="Take this size of M, N or K in place of the spec's. May be given several times.",
    )
    return option(function)


def shape_option(function: F) -> F:
    """Add `--shape 4096x4096x4096`, which gives a tuple of shapes, each once."""
    option = click.option(
        "--shape",
        "shapes",
        multiple=True,
        metavar="MxNxK",
        callback=_shapes,
        help="Measure this shape, and others given so.",
    )
    return option(function)


def target_option(function: F) -> F:
    """Add `--target`, which gives a `Target` or None."""
    option = click.option(
        "--target",
        type=click.Choice(list(TARGETS)),
        callback=_target,
        help="Take this target in place of the spec's.",
    )
    return option(function)


def color_option(function: F) -> F:
    """Add `--color`, whose value `wants_colour` takes."""
    option = click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="auto: on a terminal, unless NO_COLOR is set; FORCE_COLOR has it everywhere.",
    )
    return option(function)


def read_specs(paths: Sequence[str]) -> tuple[list[SourceFile], bool]:
    """Return all sources that can be read, and whether all could; complain of each that cannot."""
    from gemmspec.syntax.parse import decode

    sources: list[SourceFile] = []
    complete = True
    named: dict[str, None] = {}
    for path in paths:
        try:
            named.update(dict.fromkeys(find_specs([path])))
        except FileProblem as problem:
            complain(str(problem))
            complete = False
    for path in named:
        try:
            source, problems = decode(shown_name(path), read_bytes(path))
            for problem in problems:
                raise FileProblem(f"cannot read {source.name}: {problem.code}, {problem.message}")
            sources.append(source)
        except FileProblem as problem:
            complain(str(problem))
            complete = False
    return sources, complete


def _files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def _sizes(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for text in values:
        name, equals, number = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise click.BadParameter(f"`{text}` is not of the form M=8192", ctx, param)
        digits = number.replace("_", "")
        if not (digits.isascii() and digits.isdigit()) or len(digits) > _LONGEST_SIZE:
            raise click.BadParameter(f"`{number}` is not a size: a whole number is needed", ctx, param)
        if name in sizes:
            raise click.BadParameter(f"{name} is given twice", ctx, param)
        sizes[name] = int(digits)
    return sizes


def _shapes(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[int, int, int], ...]:
    shapes: list[tuple[int, int, int]] = []
    for text in values:
        match = re.fullmatch(r"([1-9]\d{0,8})x([1-9]\d{0,8})x([1-9]\d{0,8})", text)
        if match is None:
            raise click.BadParameter(f"`{text}` is not of the form 4096x4096x4096 (M x N x K)", ctx, param)
        m, n, k = map(int, match.groups())
        shapes.append((m, n, k))
    return tuple(dict.fromkeys(shapes))


def _target(ctx: click.Context, param: click.Parameter, value: str | None) -> Target | None:
    return None if value is None else TARGETS[value]
