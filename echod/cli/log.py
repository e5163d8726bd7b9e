"""`echod log`: what was done to the memory, by which job, and what of it was undone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import click

from echod.cli.by_hand import select_stores
from echod.cli.context import CommandContext
from echod.cli.output import format_timestamp, sanitize, short_path, wrap
from echod.contract.commands import LoggedJob, LogReport
from echod.contract.status import to_json
from echod.store.reader import CommitInfo


def show_log(context: CommandContext, path: Path | None, limit: int, *, as_json: bool) -> None:
    """Print what was done, the newest first."""
    from echod.app.context import open_read_context

    stores = select_stores(context, path)
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        jobs = _log_jobs(read_context.reader.history(stores))[:limit]
    if as_json:
        click.echo(to_json(LogReport(tuple(jobs))))
    elif jobs:
        click.echo("\n".join(line for job in jobs for line in _log_lines(job, context.now())))
    else:
        click.echo("Nothing has been changed here yet.")


def _log_jobs(history: Iterable[CommitInfo]) -> list[LoggedJob]:
    """A row for each job; what no job did (late writes of others that were merged) has rows of its own."""
    commits_by_job = sorted(history, key=lambda done: (done.job is None, done.job or 0))
    log_jobs: list[LoggedJob] = []
    for job, group in groupby(commits_by_job, key=lambda done: done.job):
        commits = list(group)
        log_jobs += [_log_job([commit]) for commit in commits] if job is None else [_log_job(commits)]
    return sorted(log_jobs, key=lambda row: row.at, reverse=True)


def _log_job(commits: list[CommitInfo]) -> LoggedJob:
    """Commits of one job, the newest first. It counts as undone when all of them are."""
    newest = commits[0]
    undone_by = [done.undone_by for done in commits]
    return LoggedJob(
        job=newest.job,
        kind=newest.kind,
        store=newest.store.key,
        role=newest.role.name,
        at=newest.at,
        summary="; ".join(dict.fromkeys(done.summary for done in commits)),
        undone_by=None if None in undone_by else undone_by[0],
    )


def _log_lines(row: LoggedJob, now: float) -> Iterator[str]:
    job_id = "" if row.job is None else row.job
    yield f"{job_id:>5}  {format_timestamp(row.at, now):<17} {row.kind} {row.role}  {short_path(row.store)}"
    yield wrap(sanitize(row.summary), indent=" " * 7)
    if row.undone_by is not None:
        yield f"       undone by job {row.undone_by}"
