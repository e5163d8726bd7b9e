"""Commands about the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from echod.cli.tree import options
from echod.cli.tree.base import app, example, with_shell

if TYPE_CHECKING:
    from echod.cli.shell import Shell


@app.group()
def config() -> None:
    """Show and check the settings; say where they are."""


@config.command(epilog=example("echod config show --json"))
@options.json
@with_shell
def show(shell: Shell, *, json: bool) -> None:
    """List every setting as it is in force, and who says so: the file and its line, a variable, or nobody."""
    from echod.cli.config import show

    show(shell, as_json=json)


@config.command(epilog=example("echod config path"))
@with_shell
def path(shell: Shell) -> None:
    """Print where the settings file is, or would be, and nothing else."""
    from echod.cli.config import path

    path(shell)


@config.command(epilog=example("echod config check"))
@with_shell
def check(shell: Shell) -> None:
    """Are the settings in order? Names every wrong key, with file and line, and what was probably meant.

    Ends with 78 if they are not. To try a file: echod --config FILE config check
    """
    from echod.cli.config import check

    check(shell)
