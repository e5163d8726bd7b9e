"""Commands that keep memory and knowledge files in shape."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.cli import options
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext


@app.command(epilog=example("echod scrub ~/src/my-project --dry-run"))
@options.project_path_or_cwd
@click.option("--dry-run", is_flag=True, help="Only say what stands where.")
@click.option("--yes", is_flag=True, help="Also change etched entries and notes.")
@options.force
@options.json
@pass_command_context
def scrub(context: CommandContext, *, path: Path, dry_run: bool, yes: bool, force: bool, json: bool) -> None:
    """Find secrets in a project's memory, archives and backups, and take them out.

    Says file, entry and kind, never the secret. Ends with 1 while one is left.
    """
    from echod.cli.commands.scrub import scrub_project

    scrub_project(context, path, dry_run=dry_run, yes=yes, force=force, as_json=json)
