"""Commands by which a tool says that it is at work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from echod.cli.tree.base import app, example, shell_of

workflow_app = typer.Typer(
    help="Tell echod that a tool is at work, or done.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(workflow_app, name="workflow")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Any name; `end` takes the same.")]
In = Annotated[Path, typer.Option("--project", metavar="PATH", help="The project; default: the current directory.")]


@workflow_app.command(epilog=example("echod workflow begin nightly-refactoring --ttl 90"))
def begin(
    context: typer.Context,
    name: Name,
    project: In = Path(),
    pid: Annotated[
        int | None,
        typer.Option("--pid", min=1, help="It ends with this process; default: CLAUDE_PID.", show_default=False),
    ] = None,
    ttl: Annotated[float, typer.Option("--ttl", metavar="MINUTES", min=0.01, help="It ends by itself then.")] = 240.0,
) -> None:
    """Keep echod from writing the project's memory until the workflow ends."""
    from echod.cli.workflow import begin

    begin(shell_of(context), name, project, pid, ttl)


@workflow_app.command(epilog=example("echod workflow end nightly-refactoring"))
def end(context: typer.Context, name: Name, project: In = Path()) -> None:
    """The workflow is over."""
    from echod.cli.workflow import end

    end(shell_of(context), name, project)
