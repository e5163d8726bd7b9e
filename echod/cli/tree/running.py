"""Commands about what echod does: run, status, doctor, gate, jobs, log, undo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from echod.cli.tree import options
from echod.cli.tree.base import app, command_context, example, pass_command_context
from echod.cli.tree.options import PATH, PATH_OR_NAME, Number, WholeNumber

if TYPE_CHECKING:
    from echod.cli.shell import CommandContext

MAX_JOB_ID: Final = 2**63 - 1
"""The largest number that the database can give a job."""


@app.command(epilog=example("echod run --once ~/src/my-project --wait 60"))
@click.argument("paths", metavar="[PATH]...", type=PATH, nargs=-1, help="With --once: only these projects.")
@click.option("--once", is_flag=True, help="Do what is due now, and end.")
@click.option(
    "--wait",
    metavar="SECONDS",
    type=Number(min=0),
    default=0.0,
    show_default=True,
    help="With --once: wait so long for what must wait.",
)
@pass_command_context
def run(context: CommandContext, *, paths: tuple[Path, ...], once: bool, wait: float) -> None:
    """Be the service, in the foreground; or do once what is due.

    With --once, a running service is handed the work and its outcome is shown. Ends with 1 only if a job failed.
    """
    if once:
        from echod.cli.once import run_once

        run_once(context, list(paths), wait)
    elif paths or wait:
        raise click.UsageError("paths and --wait go with --once; the service maintains what `echod add` registered.")
    else:
        from echod.cli.serve import run_service

        run_service(context)


@app.command(epilog=example("echod status --json"))
@options.json
@pass_command_context
def status(context: CommandContext, *, json: bool) -> None:
    """How is it? What waits, and why? What needs a person?

    Ends with 0 (healthy), 1 (needs a look), 3 (not running) or 4 (running, but not answering).
    """
    from echod.cli.status import show_status

    show_status(context, as_json=json)


@app.command(epilog=example("echod doctor ~/src/my-project"))
@click.argument("path", type=PATH, required=False, help="Of the projects, only this one.")
@options.json
@pass_command_context
def doctor(context: CommandContext, *, path: Path | None, json: bool) -> None:
    """Is everything as it must be? Says what is wrong, and how to mend it.

    Ends with 1 if something is wrong. Writes into no project.
    """
    from echod.cli.doctor import run_doctor

    run_doctor(context, path, as_json=json)


@app.command(epilog=example("echod gate ~/src/my-project"))
@options.project_path_or_cwd
@options.json
@pass_command_context
def gate(context: CommandContext, *, path: Path, json: bool) -> None:
    """May the project's memory be written now, and if not, why and until when?"""
    from echod.cli.gate import show_gate

    show_gate(context, path, as_json=json)


@app.group(invoke_without_command=True, epilog=example("echod jobs --json"))
@options.limit
@options.json
@click.pass_context
def jobs(ctx: click.Context, *, limit: int, json: bool) -> None:
    """List jobs; try one again."""
    if ctx.invoked_subcommand is None:
        from echod.cli.jobs import list_jobs

        list_jobs(command_context(ctx), limit, as_json=json)


@jobs.command(epilog=example("echod jobs retry 17"))
@click.argument("job", metavar="ID", type=WholeNumber(1, MAX_JOB_ID), help="The job's number.")
@pass_command_context
def retry(context: CommandContext, *, job: int) -> None:
    """Try a job again that failed or was given up."""
    from echod.cli.jobs import retry_job

    retry_job(context, job)


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
    from echod.cli.undo import parse_job_and_path, undo_job

    job, path = parse_job_and_path(words, last=last)
    undo_job(context, job, path, dry_run=dry_run, yes=yes, force=force)
