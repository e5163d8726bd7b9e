"""Commands that connect Claude Code, and what its hooks call."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from echod.cli.tree.base import app, example, shell_of

claude_app = typer.Typer(help="Connect Claude Code with echod.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(claude_app, name="claude")


@claude_app.command(epilog=example("echod claude check"))
def check(context: typer.Context) -> None:
    """Say what is connected and what is not, and how to connect it.

    Ends with 1 if something is missing. Changes nothing: Claude Code's settings are its own.
    """
    from echod.cli.claude import check

    check(shell_of(context))


@claude_app.command("plugin-dir", epilog=example("echod claude plugin-dir"))
def plugin_dir() -> None:
    """Print the directory of the plugin that comes with echod, for --plugin-dir."""
    from echod.cli.claude import plugin_dir

    plugin_dir()


@app.command(epilog=example("echod hook task-completed < event.json"))
def hook(
    event: Annotated[
        str,
        typer.Argument(metavar="EVENT", help="task-completed, session-start, session-end, pre-compact or stop."),
    ],
) -> None:
    """Take an event of an agent's session from standard input. For hooks, not for people.

    Says nothing, always ends with 0, and needs neither the service nor valid settings. docs/claude-code.md has more.
    """
    from echod.hooks.run import run

    try:
        run([event], os.environ, sys.platform)
    finally:
        os._exit(0)
