"""The command line. Commands are a table of modules, and a module is imported when its command runs.

A command's module defines `command`, and imports what the command needs inside it, so that `gemmspec --help`,
completion and `lint` stay quick. Exit status: 0 clean, 1 findings, 2 wrong usage or a file that cannot be used,
3 a bug in gemmspec, 130 interrupted.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys

import click

from gemmspec.cli.output import complain
from gemmspec.diagnostics import SizeError
from gemmspec.files import FileProblem
from gemmspec.version import __version__

COMMANDS = {
    "lint": "gemmspec.cli.lint",
    "fmt": "gemmspec.cli.fmt",
    "show": "gemmspec.cli.show",
    "compile": "gemmspec.cli.compile",
    "simulate": "gemmspec.cli.simulate",
    "bench": "gemmspec.cli.bench",
    "tune": "gemmspec.cli.tune",
    "sweep": "gemmspec.cli.sweep",
    "graph": "gemmspec.cli.graph",
    "new": "gemmspec.cli.new",
    "explain": "gemmspec.cli.explain",
    "rules": "gemmspec.cli.rules",
    "completion": "gemmspec.cli.completion",
}


class _Table(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(COMMANDS[cmd_name]).command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            from gemmspec.suggest import hint

            raise click.UsageError(f"there is no command `{name}`{hint(name, COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=_Table, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="gemmspec %(version)s")
def gemmspec() -> None:
    """Prove a warp-specialized GEMM pipeline sound, and write its TIRx kernel.

    SPEC is a file, a folder (all *.gemmspec below it), or - for standard input.
    """


def main() -> None:
    """Run the command line and exit."""
    # Modules, and most of what is made, stay until the process ends: there is hardly any garbage.
    gc.set_threshold(20_000)
    atexit.register(gc.freeze)
    sys.exit(_status())


def _status() -> int:
    try:
        status = gemmspec.main(prog_name="gemmspec", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except SizeError as problem:
        complain(f"--size {problem}")
        return 2
    except FileProblem as problem:
        complain(str(problem))
        return 2
    except (click.Abort, KeyboardInterrupt):
        return 130
    except Exception as error:
        if os.environ.get("GEMMSPEC_TRACEBACK"):
            raise
        complain(f"this is a bug in gemmspec ({type(error).__name__}: {error}); GEMMSPEC_TRACEBACK=1 shows where")
        return 3
