"""Commands by which a tool says that it is at work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.cli.tree.base import app, example, with_shell
from echod.cli.tree.options import PATH, Number, WholeNumber

if TYPE_CHECKING:
    from echod.cli.shell import Shell

name = click.argument("name", help="Any name; `end` takes the same.")
in_project = click.option(
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
@name
@in_project
@click.option("--pid", metavar="PID", type=WholeNumber(min=1), help="It ends with this process; default: CLAUDE_PID.")
@click.option(
    "--ttl",
    metavar="MINUTES",
    type=Number(min=0.01),
    default=240.0,
    show_default=True,
    help="It ends by itself then.",
)
@with_shell
def begin(shell: Shell, *, name: str, project: Path, pid: int | None, ttl: float) -> None:
    """Keep echod from writing the project's memory until the workflow ends."""
    from echod.cli.workflow import begin

    begin(shell, name, project, pid, ttl)


@workflow.command(epilog=example("echod workflow end nightly-refactoring"))
@name
@in_project
@with_shell
def end(shell: Shell, *, name: str, project: Path) -> None:
    """The workflow is over."""
    from echod.cli.workflow import end

    end(shell, name, project)
