"""`echod jobs`: list the queue and its history, or retry a job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from echod.app.context import process_is_alive
from echod.cli import options
from echod.cli.completions import complete_failed_job
from echod.cli.context import CommandContext
from echod.cli.options import WholeNumber
from echod.cli.output import WIDTH, fit_path, format_timestamp, wrap
from echod.cli.root import CommandGroup, command_context, example, pass_command_context
from echod.contract.commands import JobInfo, JobsReport
from echod.contract.status import to_json
from echod.state.database import Database
from echod.state.job import Job, JobState
from echod.state.job_rows import QueueView

MAX_JOB_ID: Final = 2**63 - 1
"""The largest number that the database can give a job."""

_INTERRUPTED_STATE = "interrupted"
_MAX_RETRYABLE = 1_000


@click.group(cls=CommandGroup, invoke_without_command=True, epilog=example("echod jobs --json"))
@options.limit
@options.json
@click.pass_context
def jobs(ctx: click.Context, *, limit: int, json: bool) -> None:
    """List jobs, or retry one."""
    if ctx.invoked_subcommand is not None:
        return
    context = command_context(ctx)
    rows = tuple(map(_job_row, _read_jobs(context, limit)))
    if json:
        click.echo(to_json(JobsReport(rows)))
    elif rows:
        click.echo("\n".join(line for row in rows for line in _job_lines(row, context.now())))
    else:
        click.echo("There are no jobs yet.")


@jobs.command(epilog=example("echod jobs retry 17"))
@click.argument(
    "job",
    metavar="ID",
    type=WholeNumber(1, MAX_JOB_ID),
    shell_complete=complete_failed_job,
    help="The number of the job.",
)
@pass_command_context
def retry(context: CommandContext, *, job: int) -> None:
    """Retry a job that failed or was given up."""
    with context.open_services() as services:
        new_id = services.queue.retry(job, context.now())
    context.notify_daemon()
    new_id_text = "" if new_id == job else f" as job {new_id}"
    context.print_info(f"Job {job} is queued again{new_id_text}.")


def _read_jobs(context: CommandContext, limit: int) -> tuple[Job, ...]:
    """Read the newest jobs, newest first."""
    database = Database.open_readonly(context.paths.database)
    if database is None:
        return ()
    with database:
        return QueueView(database).list_jobs(limit=limit)


def read_retryable_jobs(context: CommandContext) -> tuple[Job, ...]:
    """Return the jobs that `echod jobs retry` takes, newest first."""
    retryable = (JobState.DEAD, JobState.QUEUED)
    return tuple(job for job in _read_jobs(context, _MAX_RETRYABLE) if job.state in retryable)


def _job_row(job: Job) -> JobInfo:
    return JobInfo(
        job=job.id,
        kind=job.kind.value,
        store=job.store,
        role=job.role,
        state=_INTERRUPTED_STATE if _is_interrupted(job) else job.state.value,
        attempts=job.attempts,
        reason=job.reason,
        result=job.result,
        due=job.due,
        queued_at=job.queued_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
    )


def _is_interrupted(job: Job) -> bool:
    """Return whether the process that ran the job died without recording a result."""
    return job.state is JobState.RUNNING and job.worker is not None and not process_is_alive(job.worker)


def _job_lines(row: JobInfo, now: float) -> Iterator[str]:
    at = format_timestamp(row.finished_at or row.started_at or row.queued_at, now)
    yield f"{row.job:>5}  {row.state:<12}{at:<17} {row.kind} {row.role}".rstrip()
    yield f"       {fit_path(row.store, WIDTH - 7)}"
    if text := row.result or row.reason:
        yield wrap(text, indent=" " * 7)
