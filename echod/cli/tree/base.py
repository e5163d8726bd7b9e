"""The root of the tree, and what every command starts from."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import click

from echod import __version__
from echod.cli.tree.options import PATH
from echod.cli.tree.root import Root

if TYPE_CHECKING:
    from echod.cli.shell import Shell

P = ParamSpec("P")
R = TypeVar("R")


@click.group("echod", cls=Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.option("--config", metavar="FILE", type=PATH, help="Read the settings from FILE.")
@click.option("--quiet", is_flag=True, help="Print only errors, and what was asked for.")
@click.option("--no-color", is_flag=True, help="Print no colours; NO_COLOR does the same.")
@click.version_option(__version__, message="%(prog)s %(version)s", help="Print the version and exit.")
@click.pass_context
def app(context: click.Context, *, config: Path | None, quiet: bool, no_color: bool) -> None:
    """Keeps the Markdown memory of coding agents healthy: nothing lost, nothing mysterious, nothing in the way."""

    def here() -> Shell:
        from echod.cli.shell import Shell

        return Shell.here(config, quiet=quiet, no_color=no_color)

    context.obj = here


def shell_of(context: click.Context) -> Shell:
    """Where a command was called, and what was said to echod itself; read only now, since help needs none of it."""
    here: Callable[[], Shell] = context.obj
    return here()


def with_shell(command: Callable[Concatenate[Shell, P], R]) -> Callable[P, R]:
    """Give a command the shell that it was called in, before its own arguments."""

    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        return command(shell_of(click.get_current_context()), *args, **kwargs)

    return update_wrapper(called, command)


def example(command: str) -> str:
    """The last line of a command's help."""
    return f"Example: {command}"
