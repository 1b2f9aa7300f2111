"""`gemmspec new`: start a spec from one that ships with gemmspec."""

from __future__ import annotations

from pathlib import Path

import click

from gemmspec.cli.output import say


def _shipped() -> dict[str, Path]:
    from gemmspec.files import SUFFIX, shipped

    return {path.stem: path for path in sorted(shipped("specs").glob(f"*{SUFFIX}"))}


def _models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in _shipped() if name.startswith(incomplete)]


@click.command("new")
@click.argument("name")
@click.option(
    "--from",
    "model",
    default="v9",
    show_default=True,
    metavar="SPEC",
    help="A shipped spec, such as v7.",
    shell_complete=_models,
)
@click.option("--out", metavar="PATH", help="Where to write it; NAME.gemmspec by default, - for standard output.")
@click.option("--force", is_flag=True, help="Write over a file that exists.")
def command(name: str, model: str, out: str | None, force: bool) -> None:
    """Write NAME.gemmspec: a copy of a shipped spec whose kernel is called NAME."""
    from gemmspec.files import STDIN, SUFFIX, atomic_write
    from gemmspec.source import SourceFile
    from gemmspec.suggest import hint
    from gemmspec.syntax.nodes import KernelNode
    from gemmspec.syntax.parse import parse

    if not (name.isascii() and name.isidentifier()):
        raise click.UsageError(f"`{name}` cannot name a kernel: letters, digits and _ are needed, a letter first")
    models = _shipped()
    if model not in models:
        near = hint(model, models) or f"; there are {', '.join(models) or 'none'}"
        raise click.UsageError(f"no spec `{model}` ships with gemmspec{near}")
    source = SourceFile(model, models[model].read_text(encoding="utf-8"))
    tree, _ = parse(source)
    kernel = next(item for item in tree.items if isinstance(item, KernelNode)).name.span
    text = source.text[: kernel.start] + name + source.text[kernel.end :]
    if out == STDIN:
        say(text)
        return
    path = Path(out or f"{name}{SUFFIX}")
    if path.is_dir():
        path /= f"{name}{SUFFIX}"
    if path.exists() and not force:
        raise click.UsageError(f"{path} exists; --force writes over it")
    atomic_write(path, text)
    say(f"wrote {path}\n")
