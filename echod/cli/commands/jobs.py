"""`echod jobs`: the queue and its past; and trying a job again.

Commands about what echod does: run, status, doctor, gate, jobs, log, undo.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from echod.cli import options
from echod.cli.context import CommandContext
from echod.cli.options import WholeNumber
from echod.cli.output import WIDTH, fit_path, format_timestamp, wrap
from echod.cli.root import command_context, example, pass_command_context
from echod.contract.commands import JobInfo, JobsReport
from echod.contract.status import to_json
from echod.state.job import Job, JobState

_INTERRUPTED_STATE = "interrupted"


def list_jobs(context: CommandContext, limit: int, *, as_json: bool) -> None:
    """Print the newest jobs, the newest first."""
    from echod.state.database import Database
    from echod.state.job_rows import QueueView

    database = Database.open_readonly(context.paths.database)
    if database is None:
        jobs: tuple[Job, ...] = ()
    else:
        with database:
            jobs = QueueView(database).list_jobs(limit=limit)
    shown = tuple(map(_job_report, jobs))
    if as_json:
        click.echo(to_json(JobsReport(shown)))
    elif shown:
        click.echo("\n".join(line for job in shown for line in _job_lines(job, context.now())))
    else:
        click.echo("There are no jobs yet.")


def retry_job(context: CommandContext, job_id: int) -> None:
    """Queue a job again, and wake the service for it."""
    from echod.app.services import open_services
    from echod.cli.context import notify_daemon

    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        new_id = services.queue.retry(job_id, context.now())
    notify_daemon(context)
    new_id_text = "" if new_id == job_id else f" as job {new_id}"
    context.print_info(f"Job {job_id} is queued again{new_id_text}.")


def _job_report(job: Job) -> JobInfo:
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
    """Whether the process that did it is gone without a word, and no other has taken it back yet."""
    if job.state is not JobState.RUNNING or job.worker is None:
        return False
    from echod.app.context import process_is_alive

    return not process_is_alive(job.worker)


def _job_lines(job: JobInfo, now: float) -> Iterator[str]:
    at = format_timestamp(job.finished_at or job.started_at or job.queued_at, now)
    yield f"{job.job:>5}  {job.state:<12}{at:<17} {job.kind} {job.role}".rstrip()
    yield f"       {fit_path(job.store, WIDTH - 7)}"
    if said := job.result or job.reason:
        yield wrap(said, indent=" " * 7)


MAX_JOB_ID: Final = 2**63 - 1
"""The largest number that the database can give a job."""


@click.group(invoke_without_command=True, epilog=example("echod jobs --json"))
@options.limit
@options.json
@click.pass_context
def jobs(ctx: click.Context, *, limit: int, json: bool) -> None:
    """List jobs, or retry one."""
    if ctx.invoked_subcommand is None:
        list_jobs(command_context(ctx), limit, as_json=json)


@jobs.command(epilog=example("echod jobs retry 17"))
@click.argument("job", metavar="ID", type=WholeNumber(1, MAX_JOB_ID), help="The job's number.")
@pass_command_context
def retry(context: CommandContext, *, job: int) -> None:
    """Try a job again that failed or was given up."""
    retry_job(context, job)
