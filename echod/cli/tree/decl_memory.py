"""Commands about a whole memory: look at it, add to it, empty it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.cli import options
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext


@app.command(epilog=example("echod remember 'Use uv, never pip.'"))
@click.argument("text", help="What to remember; - reads it from standard input.")
@click.option("--title", metavar="TITLE", help="Its title; default: how it begins.")
@options.project_option
@options.dry_run
@options.force
@pass_command_context
def remember(
    context: CommandContext, *, text: str, title: str | None, project: Path | None, dry_run: bool, force: bool
) -> None:
    """Tell all agents of a project something: it becomes an entry of the role notes, which no rule removes."""
    from echod.cli.by_hand import WriteOptions
    from echod.cli.remember import remember_note

    remember_note(context, text, title, project, WriteOptions(dry_run, yes=True, force=force))


@app.command(epilog=example("echod reset ~/src/my-project --role reviewer"))
@options.project_path_or_cwd
@options.only_role
@options.dry_run
@options.yes
@options.force
@pass_command_context
def reset(context: CommandContext, *, path: Path, role: str | None, dry_run: bool, yes: bool, force: bool) -> None:
    """Empty the memory and knowledge files of a project, after a backup.

    All that stood in them goes to the archives of their roles. Findings and archives stay.
    """
    from echod.cli.by_hand import WriteOptions
    from echod.cli.commands.memory import reset_memory

    reset_memory(context, path, role, WriteOptions(dry_run, yes, force))
