"""`echod log`: what was done to the memory, by which job, and what of it was undone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import click

from echod.cli.by_hand import stores_meant
from echod.cli.shell import Shell
from echod.cli.text import moment, paragraph, plain, short_path
from echod.contract.commands import LogJob, LogReport
from echod.contract.status import to_json
from echod.store.reader import Done


def show_log(shell: Shell, path: Path | None, limit: int, *, as_json: bool) -> None:
    """Print what was done, the newest first."""
    from echod.app.context import look_out

    stores = stores_meant(shell, path)
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        jobs = _jobs(lookout.reader.history(stores))[:limit]
    if as_json:
        click.echo(to_json(LogReport(tuple(jobs))))
    elif jobs:
        click.echo("\n".join(line for job in jobs for line in _lines(job, shell.now())))
    else:
        click.echo("Nothing has been changed here yet.")


def _jobs(history: Iterable[Done]) -> list[LogJob]:
    """A row for each job; what no job did (late writes of others that were merged) has rows of its own."""
    rows = sorted(history, key=lambda done: (done.job is None, done.job or 0))
    told: list[LogJob] = []
    for job, group in groupby(rows, key=lambda done: done.job):
        commits = list(group)
        told += [_told([commit]) for commit in commits] if job is None else [_told(commits)]
    return sorted(told, key=lambda row: row.at, reverse=True)


def _told(commits: list[Done]) -> LogJob:
    """Commits of one job, the newest first. It counts as undone when all of them are."""
    newest = commits[0]
    undone = [done.undone_by for done in commits]
    return LogJob(
        job=newest.job,
        kind=newest.kind,
        store=newest.store.key,
        role=newest.role.name,
        at=newest.at,
        summary="; ".join(dict.fromkeys(done.summary for done in commits)),
        undone_by=None if None in undone else undone[0],
    )


def _lines(row: LogJob, now: float) -> Iterator[str]:
    number = "" if row.job is None else row.job
    yield f"{number:>5}  {moment(row.at, now):<17} {row.kind} {row.role}  {short_path(row.store)}"
    yield paragraph(plain(row.summary), indent=" " * 7)
    if row.undone_by is not None:
        yield f"       undone by job {row.undone_by}"
