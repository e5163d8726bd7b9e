"""Commands about the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from echod.cli import options
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext


@app.group()
def config() -> None:
    """Show and check the settings; say where they are."""


@config.command(epilog=example("echod config show --json"))
@options.json
@pass_command_context
def show(context: CommandContext, *, json: bool) -> None:
    """List every setting as it is in force, and who says so: the file and its line, a variable, or nobody."""
    from echod.cli.commands.config import show_settings

    show_settings(context, as_json=json)


@config.command(epilog=example("echod config path"))
@pass_command_context
def path(context: CommandContext) -> None:
    """Print where the settings file is, or would be, and nothing else."""
    from echod.cli.commands.config import print_config_path

    print_config_path(context)


@config.command(epilog=example("echod config check"))
@pass_command_context
def check(context: CommandContext) -> None:
    """Are the settings in order? Names every wrong key, with file and line, and what was probably meant.

    Ends with 78 if they are not. To try a file: echod --config FILE config check
    """
    from echod.cli.commands.config import validate_settings

    validate_settings(context)
