"""The root of the tree, and what every command starts from."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import click

from echod import __version__
from echod.cli.options import PATH
from echod.cli.tree.root import RootGroup

if TYPE_CHECKING:
    from echod.cli.context import CommandContext

P = ParamSpec("P")
R = TypeVar("R")


@click.group("echod", cls=RootGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.option("--config", metavar="FILE", type=PATH, help="Read the settings from FILE.")
@click.option("--quiet", is_flag=True, help="Print only errors, and what was asked for.")
@click.option("--no-color", is_flag=True, help="Print no colours; NO_COLOR does the same.")
@click.version_option(__version__, message="%(prog)s %(version)s", help="Print the version and exit.")
@click.pass_context
def app(ctx: click.Context, *, config: Path | None, quiet: bool, no_color: bool) -> None:
    """Keeps the Markdown memory of coding agents healthy: nothing lost, nothing mysterious, nothing in the way."""

    def build_context() -> CommandContext:
        from echod.cli.context import CommandContext

        return CommandContext.from_process(config, quiet=quiet, no_color=no_color)

    ctx.obj = build_context


def command_context(ctx: click.Context) -> CommandContext:
    """Where a command was called, and what was said to echod itself; read only now, since help needs none of it."""
    build_context: Callable[[], CommandContext] = ctx.obj
    return build_context()


def pass_command_context(command: Callable[Concatenate[CommandContext, P], R]) -> Callable[P, R]:
    """Give a command the shell that it was called in, before its own arguments."""

    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        return command(command_context(click.get_current_context()), *args, **kwargs)

    return update_wrapper(wrapper, command)


def example(command: str) -> str:
    """The last line of a command's help."""
    return f"Example: {command}"
