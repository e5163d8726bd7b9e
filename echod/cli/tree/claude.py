"""Commands that connect Claude Code, and what its hooks call."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext


@app.group()
def claude() -> None:
    """Connect Claude Code with echod."""


@claude.command(epilog=example("echod claude check"))
@pass_command_context
def check(context: CommandContext) -> None:
    """Say what is connected and what is not, and how to connect it.

    Ends with 1 if something is missing. Changes nothing: Claude Code's settings are its own.
    """
    from echod.cli.commands.claude import check_connection

    check_connection(context)


@claude.command("plugin-dir", epilog=example("echod claude plugin-dir"))
def plugin_dir() -> None:
    """Print the directory of the plugin that comes with echod, for --plugin-dir."""
    from echod.cli.commands.claude import print_plugin_dir

    print_plugin_dir()


@app.command(epilog=example("echod hook task-completed < event.json"))
@click.argument("event", help="task-completed, session-start, session-end, pre-compact or stop.")
def hook(*, event: str) -> None:
    """Take an event of an agent's session from standard input. For hooks, not for people.

    Says nothing, always ends with 0, and needs neither the service nor valid settings. docs/claude-code.md has more.
    """
    from echod.hooks.run import run

    try:
        run([event], os.environ, sys.platform)
    finally:
        os._exit(0)
