"""Commands about a whole memory: look at it, add to it, empty it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.cli.tree import options
from echod.cli.tree.base import app, example, with_shell
from echod.cli.tree.options import PATH_OR_ELSE

if TYPE_CHECKING:
    from echod.cli.shell import Shell


@app.command(epilog=example("echod show reviewer"))
@click.argument(
    "what",
    metavar="[PATH|ROLE|ENTRY]",
    type=PATH_OR_ELSE,
    required=False,
    help="A project, a role, or an entry's id or beginning.",
)
@options.where
@options.in_global
@options.json
@with_shell
def show(shell: Shell, *, what: str | None, path: Path | None, in_global: bool, json: bool) -> None:
    """What is in memory? Of a project its roles, of a role its entries, of an entry its text and history."""
    from echod.cli.by_hand import place_meant
    from echod.cli.show import show

    show(shell, what, place_meant(path, in_global=in_global), as_json=json)


@app.command(epilog=example("echod remember 'Use uv, never pip.'"))
@click.argument("text", help="What to remember; - reads it from standard input.")
@click.option("--title", metavar="TITLE", help="Its title; default: how it begins.")
@options.in_project
@options.dry_run
@options.force
@with_shell
def remember(shell: Shell, *, text: str, title: str | None, project: Path | None, dry_run: bool, force: bool) -> None:
    """Tell all agents of a project something: it becomes an entry of the role notes, which no rule removes."""
    from echod.cli.by_hand import Wish
    from echod.cli.remember import remember

    remember(shell, text, title, project, Wish(dry_run, yes=True, force=force))


@app.command(epilog=example("echod reset ~/src/my-project --role reviewer"))
@options.project_here
@options.one_role
@options.dry_run
@options.yes
@options.force
@with_shell
def reset(shell: Shell, *, path: Path, role: str | None, dry_run: bool, yes: bool, force: bool) -> None:
    """Empty the memory and knowledge files of a project, after a backup.

    All that stood in them goes to the archives of their roles. Findings and archives stay.
    """
    from echod.cli.by_hand import Wish
    from echod.cli.reset import reset

    reset(shell, path, role, Wish(dry_run, yes, force))
