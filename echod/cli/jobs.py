"""`echod jobs`: the queue and its past; and trying a job again."""

from __future__ import annotations

from collections.abc import Iterator

import click

from echod.cli.shell import Shell
from echod.cli.text import WIDTH, fitted, moment, paragraph
from echod.contract.commands import JobReport, JobsReport
from echod.contract.status import to_json
from echod.state.job import Job, JobState

_INTERRUPTED = "interrupted"


def list_jobs(shell: Shell, limit: int, *, as_json: bool) -> None:
    """Print the newest jobs, the newest first."""
    from echod.state.database import Database
    from echod.state.job_rows import QueueView

    database = Database.open_reading(shell.paths.database)
    if database is None:
        jobs: tuple[Job, ...] = ()
    else:
        with database:
            jobs = QueueView(database).jobs(limit=limit)
    shown = tuple(map(_report, jobs))
    if as_json:
        click.echo(to_json(JobsReport(shown)))
    elif shown:
        click.echo("\n".join(line for job in shown for line in _lines(job, shell.now())))
    else:
        click.echo("There are no jobs yet.")


def retry_job(shell: Shell, number: int) -> None:
    """Queue a job again, and wake the service for it."""
    from echod.app.services import furnish
    from echod.cli.wake import wake_daemon

    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house:
        goes_on = house.queue.retry(number, shell.now())
    wake_daemon(shell)
    as_other = "" if goes_on == number else f" as job {goes_on}"
    shell.say(f"Job {number} is queued again{as_other}.")


def _report(job: Job) -> JobReport:
    return JobReport(
        job=job.id,
        kind=job.kind.value,
        store=job.store,
        role=job.role,
        state=_INTERRUPTED if _interrupted(job) else job.state.value,
        attempts=job.attempts,
        reason=job.reason,
        result=job.result,
        due=job.due,
        queued_at=job.queued_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
    )


def _interrupted(job: Job) -> bool:
    """Whether the process that did it is gone without a word, and no other has taken it back yet."""
    if job.state is not JobState.RUNNING or job.worker is None:
        return False
    from echod.app.context import still_runs

    return not still_runs(job.worker)


def _lines(job: JobReport, now: float) -> Iterator[str]:
    at = moment(job.finished_at or job.started_at or job.queued_at, now)
    yield f"{job.job:>5}  {job.state:<12}{at:<17} {job.kind} {job.role}".rstrip()
    yield f"       {fitted(job.store, WIDTH - 7)}"
    if said := job.result or job.reason:
        yield paragraph(said, indent=" " * 7)
