"""Commands about a whole memory: look at it, add to it, empty it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from echod.cli.tree.base import app, example, shell_of
from echod.cli.tree.options import DryRun, Force, Global, Json, OneRole, Project, Where, Yes


@app.command(epilog=example("echod show reviewer"))
def show(
    context: typer.Context,
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH|ROLE|ENTRY", help="A project, a role, or an entry's id or beginning.", show_default=False
        ),
    ] = None,
    path: Where = None,
    in_global: Global = False,
    json: Json = False,
) -> None:
    """What is in memory? Of a project its roles, of a role its entries, of an entry its text and history."""
    from echod.cli.by_hand import place_meant
    from echod.cli.show import show

    show(shell_of(context), what, place_meant(path, in_global=in_global), as_json=json)


@app.command(epilog=example("echod remember 'Use uv, never pip.'"))
def remember(
    context: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember; - reads it from standard input.")],
    title: Annotated[
        str | None,
        typer.Option("--title", metavar="TITLE", help="Its title; default: how it begins.", show_default=False),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option("--project", metavar="PATH", help="The project; default: the one we are in.", show_default=False),
    ] = None,
    dry_run: DryRun = False,
    force: Force = False,
) -> None:
    """Tell all agents of a project something: it becomes an entry of the role notes, which no rule removes."""
    from echod.cli.by_hand import Wish
    from echod.cli.remember import remember

    remember(shell_of(context), text, title, project, Wish(dry_run, yes=True, force=force))


@app.command(epilog=example("echod reset ~/src/my-project --role reviewer"))
def reset(
    context: typer.Context,
    path: Project = Path(),
    role: OneRole = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    force: Force = False,
) -> None:
    """Empty the memory and knowledge files of a project, after a backup.

    All that stood in them goes to the archives of their roles. Findings and archives stay.
    """
    from echod.cli.by_hand import Wish
    from echod.cli.reset import reset

    reset(shell_of(context), path, role, Wish(dry_run, yes, force))
