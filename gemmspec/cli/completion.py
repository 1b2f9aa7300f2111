"""`gemmspec completion`: print the shell script that completes gemmspec's command line."""

from __future__ import annotations

import click

from gemmspec.cli.output import say


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a completion script.

    bash: eval "$(gemmspec completion bash)" in ~/.bashrc; zsh the same in ~/.zshrc;
    fish: gemmspec completion fish > ~/.config/fish/completions/gemmspec.fish
    """
    from click.shell_completion import get_completion_class

    import gemmspec.cli

    kind = get_completion_class(shell)
    assert kind is not None, shell
    completer = kind(gemmspec.cli.gemmspec, {}, "gemmspec", "_GEMMSPEC_COMPLETE")
    # Not `source()`, which runs bash to look at its version.
    say(completer.source_template % completer.source_vars())
