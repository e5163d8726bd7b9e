"""`echod undo`: take back what a job did to the memory, after saying exactly what that would change.

`echod log`: what was done to the memory, by which job, and what of it was undone.

Commands about what echod does: run, status, doctor, gate, jobs, log, undo.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import click

from echod.app.context import open_read_context
from echod.app.services import Services, open_services
from echod.cli import options
from echod.cli.context import CommandContext, notify_daemon
from echod.cli.execute import ManualJob, run_multi_role_job
from echod.cli.options import PATH_OR_NAME
from echod.cli.output import format_timestamp, sanitize, short_path, wrap
from echod.cli.root import example, pass_command_context
from echod.cli.targets import build_manual_gate, confirm, require_write_mode, select_stores, workflow_running_error
from echod.clock import local_date
from echod.contract.commands import LoggedJob, LogReport
from echod.contract.status import to_json
from echod.errors import UsageError
from echod.inspection.entry_facts import pin_restored
from echod.jobs.base import JobDone, JobOutcome, JobResources
from echod.memory.model import Block
from echod.packs.manifests import sync_manifests
from echod.state.job import JobKind
from echod.store.layout import global_root, packs_store
from echod.store.reader import CommitInfo
from echod.store.undo import UndoPreview

_MAX_SHOWN_CHANGES = 12
_MAX_JOB_ID_DIGITS = 18
"""A number that has more is no job's: the database cannot count so far."""

_MANIFEST_ONLY_LINE = "  change no memory file; the pack's manifest becomes what it was"


class _UndoPlan(NamedTuple):
    """What is to be taken back: the newest of the job's commits stands for the job."""

    job: int
    newest_commit: CommitInfo
    previews: tuple[UndoPreview, ...]

    @property
    def project(self) -> Path:
        return self.newest_commit.store.project

    @property
    def is_global(self) -> bool:
        """Whether it is about the global store, which belongs to no project, so that no workflow holds it."""
        return global_root(self.newest_commit.store) is not None

    @property
    def is_pack(self) -> bool:
        """Whether it is about a doc pack, whose manifest follows what is done to it."""
        return self.is_global and self.newest_commit.store == packs_store(self.project)


def parse_job_and_path(arguments: Sequence[str], *, last: bool) -> tuple[int | None, Path | None]:
    """What was typed after `echod undo`: a job (None with `last`) and a project (None: not named).

    Raises:
        UsageError: it makes no sense.
    """
    remaining = list(arguments)
    job = None
    if not last:
        if not remaining:
            raise UsageError("Which job? Name its number (`echod log` lists them), or say --last.")
        job_text = remaining.pop(0)
        if not (job_text.isascii() and job_text.isdigit() and len(job_text) <= _MAX_JOB_ID_DIGITS):
            raise UsageError(
                f"{sanitize(job_text)} is not a job's number; `echod log` lists them, --last is the newest."
            )
        job = int(job_text)
    if len(remaining) > 1 or (last and remaining and remaining[0].isdigit() and not Path(remaining[0]).exists()):
        raise UsageError("Name one job and one project: echod undo JOB [PATH], or echod undo --last [PATH].")
    return job, Path(remaining[0]) if remaining else None


def undo_job(
    context: CommandContext, job: int | None, path: Path | None, *, dry_run: bool, yes: bool, force: bool
) -> None:
    """Take back job `job`, or the newest one that stands.

    Raises:
        UsageError: no such job was done there, or a question cannot be asked.
        WriteNotAllowedError: a workflow is at work, or the settings forbid to write; nothing was changed.
        EchodError: it cannot be undone, the sentence says why.
    """
    plan, reason = _plan_undo(context, job, path, force=force)
    text = "\n".join(_undo_plan_lines(plan, context.now(), max_lines=sys.maxsize if dry_run else _MAX_SHOWN_CHANGES))
    context.print_plan(text, always=dry_run or not yes)
    if dry_run:
        if reason is not None:
            click.echo(wrap(f"It would have to wait, since a workflow is at work: {reason}", hang="  "))
        return
    require_write_mode(context)
    if reason is not None:
        raise workflow_running_error(plan.project, reason)
    if not yes:
        confirm(f"Undo job {plan.job}?")
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        undo_job_id = _run_undo_job(context, services, plan, force=force)
    notify_daemon(context)
    context.print_info(f"Undone, as job {undo_job_id}. To do it again: echod undo {undo_job_id}")


def _plan_undo(
    context: CommandContext, job: int | None, path: Path | None, *, force: bool
) -> tuple[_UndoPlan, str | None]:
    """What is to be done, and why it would have to wait; changes nothing."""
    # A job may be named from anywhere; only where a project is named it must be one of that project's.
    stores = select_stores(context, path) if job is None or path is not None else None
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        commits = read_context.reader.history(stores)
        job_id = _newest_undoable_job(commits) if job is None else job
        newest_commit = next((commit for commit in commits if commit.job == job_id), None)
        if newest_commit is None:
            if path is None:
                read_context.reader.preview_undo(job_id)  # refuses with the reason
            raise UsageError(f"Job {job_id} changed nothing in {short_path(str(path))}; `echod log` lists what did.")
        plan = _UndoPlan(job_id, newest_commit, read_context.reader.preview_undo(job_id))
        reason = (
            None if force or plan.is_global else build_manual_gate(context, read_context.project_gate, plan.project)()
        )
        return plan, reason


def _newest_undoable_job(commits: Iterable[CommitInfo]) -> int:
    """The newest job that stands; what an undo did is no job to be undone unnamed."""
    for commit in commits:
        if commit.job is not None and commit.undone_by is None and commit.kind != JobKind.UNDO:
            return commit.job
    raise UsageError("There is no job that could be undone here; `echod log` lists what was done.")


def _run_undo_job(context: CommandContext, services: Services, plan: _UndoPlan, *, force: bool) -> int:
    """Do it, as a job of its own; its number."""

    def work(resources: JobResources) -> JobOutcome:
        undo_result = services.engine.undo(plan.job, by_job=resources.job_id, gate=resources.gate)
        today = local_date(context.now())
        until = today + timedelta(days=services.settings.policy.pin_days)
        pin_restored(services.entries, plan.newest_commit.store, plan.newest_commit.kind, undo_result, today, until)
        if plan.is_global:
            sync_manifests(services.engine, plan.project)
        return JobDone(f"took back job {plan.job}: {plan.newest_commit.summary}", changed=True)

    manual_job = ManualJob(JobKind.UNDO, plan.newest_commit.role, f"a person takes back job {plan.job}")
    return run_multi_role_job(context, services, manual_job, work, force=force or plan.is_global).job.id


def _undo_plan_lines(plan: _UndoPlan, now: float, *, max_lines: int) -> Iterator[str]:
    commit = plan.newest_commit
    role = f"{commit.kind} {commit.role.name}".strip()
    yield f"Job {plan.job}: {role}  {short_path(commit.store.key)}  {format_timestamp(commit.at, now)}"
    yield wrap(sanitize(commit.summary), indent="  ")
    yield "To undo it means to"
    lines = [line for preview in plan.previews for line in _preview_lines(preview)]
    yield from lines[:max_lines] or [
        _MANIFEST_ONLY_LINE if plan.is_pack else "  change nothing: others have done so already"
    ]
    if len(lines) > max_lines:
        yield f"  ... and {len(lines) - max_lines} more (all with --dry-run)"
    if any(preview.removed_blocks or preview.removed_files for preview in plan.previews):
        yield "What is taken out is kept in the role's archive."
    if not all(preview.exact for preview in plan.previews):
        yield "The memory was changed since; what others wrote stays."
    if any(preview.redacted for preview in plan.previews):
        yield wrap("The secrets that were removed are no longer kept; the text comes back without them.")


def _preview_lines(preview: UndoPreview) -> Iterator[str]:
    for path in preview.restored_files:
        yield wrap(sanitize(path), indent="  bring back the file   ")
    for path in preview.removed_files:
        yield wrap(sanitize(path), indent="  take away the file    ")
    for block in preview.restored_blocks:
        yield wrap(_block_title(block), indent="  bring back the entry  ")
    for block in preview.removed_blocks:
        yield wrap(_block_title(block), indent="  take out the entry    ")


def _block_title(block: Block) -> str:
    return sanitize(block.entry.title if block.entry else block.text.strip().partition("\n")[0]) or "(untitled)"


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


@click.command(epilog=example("echod log ~/src/my-project --limit 5"))
@options.project_path_or_all
@options.limit
@options.json
@pass_command_context
def log(context: CommandContext, *, path: Path | None, limit: int, json: bool) -> None:
    """List the changes that echod made."""
    show_log(context, path, limit, as_json=json)


@click.command(epilog=example("echod undo --last ~/src/my-project --dry-run"))
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
    """Undo the changes of a job.

    The bytes come back exactly if nothing else changed; else what others wrote since stays. Findings that come back
    are not folded in again unless they change. An undo can be undone too, by its own number.
    """
    job, path = parse_job_and_path(words, last=last)
    undo_job(context, job, path, dry_run=dry_run, yes=yes, force=force)
