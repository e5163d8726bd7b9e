"""The root of the tree, and what every command starts from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from echod import __version__
from echod.cli.shell import Shell
from echod.cli.tree.root import Root

app = typer.Typer(
    name="echod",
    cls=Root,
    help="Keeps the Markdown memory of coding agents healthy: nothing lost, nothing mysterious, nothing in the way.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)


def example(command: str) -> str:
    """The last line of a command's help."""
    return f"Example: {command}"


def shell_of(context: typer.Context) -> Shell:
    """What `_root` set for every command."""
    shell = context.obj
    assert isinstance(shell, Shell)  # noqa: S101
    return shell


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"echod {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Read the settings from FILE.", show_default=False)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only errors, and what was asked for.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="Print no colours; NO_COLOR does the same.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    del version
    context.obj = Shell.here(config, quiet=quiet, no_color=no_color)
