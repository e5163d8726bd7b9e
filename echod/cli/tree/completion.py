"""The command that teaches a shell the others."""

from __future__ import annotations

import click

from echod.cli.root import app, example


@app.command(epilog=example("echod completion bash >> ~/.bashrc"))
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), help="The shell that is to complete echod.")
def completion(*, shell: str) -> None:
    """Print what makes a shell complete echod's commands and options with the Tab key.

    Changes no file: where it goes is yours to say. For fish: ~/.config/fish/completions/echod.fish
    """
    from echod.cli.completion import print_completion_script

    print_completion_script(app, shell)
