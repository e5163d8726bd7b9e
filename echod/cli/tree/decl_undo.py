"""Commands about what echod does: run, status, doctor, gate, jobs, log, undo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.cli import options
from echod.cli.options import PATH_OR_NAME
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext


@app.command(epilog=example("echod log ~/src/my-project --limit 5"))
@options.project_path_or_all
@options.limit
@options.json
@pass_command_context
def log(context: CommandContext, *, path: Path | None, limit: int, json: bool) -> None:
    """List what was changed in memories, by which job, and what was undone."""
    from echod.cli.log import show_log

    show_log(context, path, limit, as_json=json)


@app.command(epilog=example("echod undo --last ~/src/my-project --dry-run"))
@click.argument(
    "words",
    metavar="[JOB|PATH]...",
    type=PATH_OR_NAME,
    nargs=-1,
    help="The job's number, as `echod log` shows it, or --last; and the project.",
)
@click.option("--last", is_flag=True, help="The newest job that was not undone.")
@click.option("--dry-run", is_flag=True, help="Only say what would come back.")
@options.yes
@options.force
@pass_command_context
def undo(context: CommandContext, *, words: tuple[str, ...], last: bool, dry_run: bool, yes: bool, force: bool) -> None:
    """Take back what a job did to a memory.

    The bytes come back exactly if nothing else changed; else what others wrote since stays. Findings that come back
    are not folded in again unless they change. An undo can be undone too, by its own number.
    """
    from echod.cli.commands.undo import parse_job_and_path, undo_job

    job, path = parse_job_and_path(words, last=last)
    undo_job(context, job, path, dry_run=dry_run, yes=yes, force=force)
