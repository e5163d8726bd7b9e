"""Commands by which a tool says that it is at work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.cli.options import PATH, Number, WholeNumber
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext

name_argument = click.argument("name", help="Any name; `end` takes the same.")
project_or_cwd_option = click.option(
    "--project",
    metavar="PATH",
    type=PATH,
    default=Path(),
    show_default=True,
    help="The project; default: the current directory.",
)


@app.group()
def workflow() -> None:
    """Tell echod that a tool is at work, or done."""


@workflow.command(epilog=example("echod workflow begin nightly-refactoring --ttl 90"))
@name_argument
@project_or_cwd_option
@click.option("--pid", metavar="PID", type=WholeNumber(min=1), help="It ends with this process; default: CLAUDE_PID.")
@click.option(
    "--ttl",
    metavar="MINUTES",
    type=Number(min=0.01),
    default=240.0,
    show_default=True,
    help="It ends by itself then.",
)
@pass_command_context
def begin(context: CommandContext, *, name: str, project: Path, pid: int | None, ttl: float) -> None:
    """Keep echod from writing the project's memory until the workflow ends."""
    from echod.cli.commands.gate import begin_workflow

    begin_workflow(context, name, project, pid, ttl)


@workflow.command(epilog=example("echod workflow end nightly-refactoring"))
@name_argument
@project_or_cwd_option
@pass_command_context
def end(context: CommandContext, *, name: str, project: Path) -> None:
    """The workflow is over."""
    from echod.cli.commands.gate import end_workflow

    end_workflow(context, name, project)
