"""Commands about the settings."""

from __future__ import annotations

import typer

from echod.cli.tree.base import app, example, shell_of
from echod.cli.tree.options import Json

config_app = typer.Typer(
    help="Show and check the settings; say where they are.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(config_app, name="config")


@config_app.command(epilog=example("echod config show --json"))
def show(context: typer.Context, json: Json = False) -> None:
    """List every setting as it is in force, and who says so: the file and its line, a variable, or nobody."""
    from echod.cli.config import show

    show(shell_of(context), as_json=json)


@config_app.command(epilog=example("echod config path"))
def path(context: typer.Context) -> None:
    """Print where the settings file is, or would be, and nothing else."""
    from echod.cli.config import path

    path(shell_of(context))


@config_app.command(epilog=example("echod config check"))
def check(context: typer.Context) -> None:
    """Are the settings in order? Names every wrong key, with file and line, and what was probably meant.

    Ends with 78 if they are not. To try a file: echod --config FILE config check
    """
    from echod.cli.config import check

    check(shell_of(context))
