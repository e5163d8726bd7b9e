"""The command that teaches a shell the others."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from echod.cli.tree.base import app, example


class ShellName(StrEnum):
    """The shells that can be taught."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command(epilog=example("echod completion bash >> ~/.bashrc"))
def completion(
    shell: Annotated[ShellName, typer.Argument(metavar="bash|zsh|fish", help="The shell that is to complete echod.")],
) -> None:
    """Print what makes a shell complete echod's commands and options with the Tab key.

    Changes no file: where it goes is yours to say. For fish: ~/.config/fish/completions/echod.fish
    """
    from echod.cli.completion import print_script

    print_script(typer.main.get_command(app), shell.value)
