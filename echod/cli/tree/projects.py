"""Commands about the list of projects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.cli import options
from echod.cli.options import PATH
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext


@app.command(epilog=example("echod add ~/src/my-project"))
@options.project_path
@pass_command_context
def add(context: CommandContext, *, path: Path) -> None:
    """Maintain the memory of a project from now on."""
    from echod.cli.commands.projects import add_project

    add_project(context, path)


@app.command(epilog=example("echod remove ~/src/my-project --purge --dry-run"))
@click.argument("path", type=PATH, help="A registered project, which may be gone.")
@click.option("--purge", is_flag=True, help="Also forget what was done there and what is known.")
@options.dry_run
@options.yes
@pass_command_context
def remove(context: CommandContext, *, path: Path, purge: bool, dry_run: bool, yes: bool) -> None:
    """Stop maintaining a project. Its memory stays as it is.

    With --purge nothing that was done there can be undone any more: the project's jobs, references and ages go from
    the database, and the texts of its changes from the journal. Memory and archives stay all the same.
    """
    from echod.cli.remove import remove_project

    remove_project(context, path, purge=purge, dry_run=dry_run, yes=yes)


@app.command(epilog=example("echod projects --json"))
@options.json
@pass_command_context
def projects(context: CommandContext, *, json: bool) -> None:
    """List the projects that are maintained."""
    from echod.cli.commands.projects import list_projects

    list_projects(context, as_json=json)


@app.command(epilog=example("echod pause ~/src/my-project"))
@options.optional_project_path
@pass_command_context
def pause(context: CommandContext, *, path: Path | None) -> None:
    """Write no memory until `echod resume`; what comes up meanwhile waits."""
    from echod.cli.commands.projects import pause_project

    pause_project(context, path)


@app.command(epilog=example("echod resume ~/src/my-project"))
@options.optional_project_path
@pass_command_context
def resume(context: CommandContext, *, path: Path | None) -> None:
    """Go on after `echod pause`."""
    from echod.cli.commands.projects import resume_project

    resume_project(context, path)


@app.command(epilog=example("echod init ~/src/my-project --roles reviewer,workers,team"))
@click.argument("path", type=PATH, required=False, help="The project; default: the one we are in.")
@click.option("--roles", metavar="A,B,...", help="Only these roles.")
@click.option("--layout", metavar="rune|claude", help="Where: .rune/echoes or .claude/echoes.")
@click.option("--dry-run", is_flag=True, help="Only say what would be made.")
@pass_command_context
def init(context: CommandContext, *, path: Path | None, roles: str | None, layout: str | None, dry_run: bool) -> None:
    """Give a project a memory, and maintain it. Makes what is missing and asks nothing.

    Without --layout it is where the project has one; else .claude/echoes if only .claude is there, else .rune/echoes.
    """
    from echod.cli.commands.init import init_project

    init_project(context, path, roles, layout, dry_run=dry_run)
