"""`echod completion`: print a shell completion script, and answer the shells that use it."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import shell_complete

from echod.cli.root import app, example

COMPLETE_VARIABLE: Final = "_ECHOD_COMPLETE"
"""The variable by which a shell asks for completions. The printed script sets it."""


def print_completions(root: click.Command, instruction: str) -> int:
    """Print the completions that a shell asked for through `COMPLETE_VARIABLE`.

    Returns:
        the exit code: 1 for an unknown shell.
    """
    return shell_complete(root, {}, "echod", COMPLETE_VARIABLE, instruction)


@click.command(epilog=example("echod completion bash >> ~/.bashrc"))
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), help="The shell that completes echod.")
def completion(*, shell: str) -> None:
    """Print a shell completion script.

    Changes no file. Redirect the output to your shell's startup file, for fish to
    ~/.config/fish/completions/echod.fish
    """
    print_completions(app, f"{shell}_source")
