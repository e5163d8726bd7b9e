"""Commands about the list of projects."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from echod.cli.tree.base import app, example, shell_of
from echod.cli.tree.options import DryRun, Json, OnlyHere, Project, Yes


@app.command(epilog=example("echod add ~/src/my-project"))
def add(context: typer.Context, path: Project) -> None:
    """Maintain the memory of a project from now on."""
    from echod.cli.projects import add

    add(shell_of(context), path)


@app.command(epilog=example("echod remove ~/src/my-project --purge --dry-run"))
def remove(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A registered project, which may be gone.")],
    purge: Annotated[bool, typer.Option("--purge", help="Also forget what was done there and what is known.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Stop maintaining a project. Its memory stays as it is.

    With --purge nothing that was done there can be undone any more: the project's jobs, references and ages go from
    the database, and the texts of its changes from the journal. Memory and archives stay all the same.
    """
    from echod.cli.remove import remove

    remove(shell_of(context), path, purge=purge, dry_run=dry_run, yes=yes)


@app.command(epilog=example("echod projects --json"))
def projects(context: typer.Context, json: Json = False) -> None:
    """List the projects that are maintained."""
    from echod.cli.projects import list_projects

    list_projects(shell_of(context), as_json=json)


@app.command(epilog=example("echod pause ~/src/my-project"))
def pause(
    context: typer.Context,
    path: OnlyHere = None,
) -> None:
    """Write no memory until `echod resume`; what comes up meanwhile waits."""
    from echod.cli.projects import pause

    pause(shell_of(context), path)


@app.command(epilog=example("echod resume ~/src/my-project"))
def resume(
    context: typer.Context,
    path: OnlyHere = None,
) -> None:
    """Go on after `echod pause`."""
    from echod.cli.projects import resume

    resume(shell_of(context), path)


@app.command(epilog=example("echod init ~/src/my-project --roles reviewer,workers,team"))
def init(
    context: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(metavar="PATH", help="The project; default: the one we are in.", show_default=False),
    ] = None,
    roles: Annotated[
        str | None, typer.Option("--roles", metavar="A,B,...", help="Only these roles.", show_default=False)
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout", metavar="rune|claude", help="Where: .rune/echoes or .claude/echoes.", show_default=False
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be made.")] = False,
) -> None:
    """Give a project a memory, and maintain it. Makes what is missing and asks nothing.

    Without --layout it is where the project has one; else .claude/echoes if only .claude is there, else .rune/echoes.
    """
    from echod.cli.init import init

    init(shell_of(context), path, roles, layout, dry_run=dry_run)
