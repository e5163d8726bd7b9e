"""`echod undo`: preview the reversal of a job, and make it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

from echod.cli.context import CommandContext
from echod.cli.execute import (
    Change,
    Confirmation,
    JobRunner,
    ManualJob,
    Step,
    WriteOptions,
    adopt_moved,
    build_manual_gate,
    make_change,
    report_already_so,
    workflow_running_error,
)
from echod.cli.output import format_timestamp, sanitize, short_path, title_text, wrap
from echod.cli.session_roots import find_memory_undo, find_undo, newest_session_job, undo_change, undo_memory_change
from echod.cli.targets import block_title, is_job_id, select_project_to_change
from echod.clock import local_date
from echod.errors import UsageError
from echod.inspection.inspect import pin_restored
from echod.jobs.base import JobDone, JobOutcome, JobResources
from echod.jobs.packs import sync_manifests
from echod.memory.text import pluralize
from echod.state.jobs import JobKind
from echod.store.errors import AlreadyUndoneError
from echod.store.layout import Store, global_root, packs_store
from echod.store.reader import CommitInfo
from echod.store.undo import UndoPreview

_MAX_SHOWN_CHANGES = 12


class _UndoPlan(NamedTuple):
    """A job to undo. The newest of its commits represents it."""

    job_id: int
    newest_commit: CommitInfo
    previews: tuple[UndoPreview, ...]
    workflow: str | None

    @property
    def project(self) -> Path:
        return self.newest_commit.store.project

    @property
    def is_global(self) -> bool:
        """True if it changed the global store. That belongs to no project, so no workflow blocks the undo."""
        return global_root(self.newest_commit.store) is not None

    @property
    def is_pack(self) -> bool:
        """True if it changed a doc pack. Its manifest is corrected afterwards."""
        return self.is_global and self.newest_commit.store == packs_store(self.project)


def undo(
    context: CommandContext, *, words: tuple[str, ...], last: bool, in_all: bool, dry_run: bool, yes: bool, force: bool
) -> None:
    """Run `echod undo`."""
    job_id, path = parse_job_and_path(words, last=last)
    if in_all and not last:
        raise UsageError("--all requires --last. A job's number is enough from anywhere.")
    if (other := _find_other_undo(context, job_id, path, in_all=in_all)) is not None:
        make_change(context, other, WriteOptions(dry_run, yes, force))
        return
    try:
        plan = _plan_undo(context, job_id, path, in_all=in_all, force=force)
    except AlreadyUndoneError as error:
        report_already_so(context, str(error))
    lines = list(_plan_lines(plan, context.now(), max_lines=sys.maxsize if dry_run else _MAX_SHOWN_CHANGES))
    if plan.workflow is not None and dry_run:
        lines.append(wrap(f"It would be refused now, since a workflow is running: {plan.workflow}", hang="  "))
    change = Change(
        preview="\n".join(lines),
        steps=[Step(f"job {plan.job_id}", partial(_run_undo_job, plan))],
        question=Confirmation(f"Undo job {plan.job_id}?"),
        refusal=None if plan.workflow is None else workflow_running_error(plan.project, plan.workflow),
    )
    make_change(context, change, WriteOptions(dry_run, yes, force))


def _find_other_undo(context: CommandContext, job_id: int | None, path: Path | None, *, in_all: bool) -> Change | None:
    """Return the undo of archived conversations or of auto memory; None if the command means a memory file."""
    if job_id is None:
        return _find_newest_other_undo(context, path, in_all=in_all)
    if (record := find_memory_undo(context, job_id)) is not None:
        return undo_memory_change(context, record)
    projects = None if path is None else [context.find_project(path)]
    with context.open_read_context() as read_context:
        changes = find_undo(context, read_context, job_id, projects)
    return undo_change(context, changes) if changes else None


def _find_newest_other_undo(context: CommandContext, path: Path | None, *, in_all: bool) -> Change | None:
    """Return the undo of the newest change, if that is one of conversations or of auto memory; else None.

    Auto memory may be that of a directory without a memory of echod's format.
    """
    if in_all and path is not None:
        return None  # they exclude each other, which is reported later
    start = project = None
    if not in_all:
        if path is None and context.cwd is None:
            return None
        start = context.absolute_path(path or Path())
        with suppress(UsageError):
            project = context.find_project(start)
    record = find_memory_undo(context, None, None if start is None else [project or start])
    commits: Iterable[CommitInfo] = ()
    session_job = 0
    with context.open_read_context() as read_context:
        if in_all or project is not None:
            commits = read_context.reader.history(None if project is None else context.list_stores(project))
            session_job = newest_session_job(read_context, None if project is None else [project])
        newest = max(next(_undoable_jobs(commits), 0), session_job)
        if record is not None and record.job > newest:
            return undo_memory_change(context, record)
        if session_job and session_job == newest:
            projects = None if project is None else [project]
            return undo_change(context, find_undo(context, read_context, session_job, projects))
    return None


def parse_job_and_path(arguments: Sequence[str], *, last: bool) -> tuple[int | None, Path | None]:
    """Parse the arguments of `echod undo` into a job (None with `--last`) and a project (None if not named).

    Raises:
        UsageError: they do not fit together.
    """
    remaining = list(arguments)
    job_id = None
    if not last:
        if not remaining:
            raise UsageError("Type the number of a job (`echod log` lists them), or use --last.")
        text = remaining.pop(0)
        if not is_job_id(text):
            raise UsageError(f"{sanitize(text)} is not a job's number. `echod log` lists them, --last is the newest.")
        job_id = int(text)
    if len(remaining) > 1 or (last and remaining and remaining[0].isdigit() and not Path(remaining[0]).exists()):
        raise UsageError("Name one job and one project: echod undo JOB [PATH], or echod undo --last [PATH].")
    return job_id, Path(remaining[0]) if remaining else None


def _plan_undo(
    context: CommandContext, job_id: int | None, path: Path | None, *, in_all: bool, force: bool
) -> _UndoPlan:
    """Find the job and preview its undo. Read-only."""
    stores: tuple[Store, ...] | None = None
    # A job may be named by its number from anywhere. If a project is named, the job must be one of that project.
    if job_id is None or path is not None:
        stores = _select_undo_stores(context, path, in_all=in_all)
    with context.open_read_context() as read_context:
        commits = read_context.reader.history(stores)
        if job_id is None:
            job_id = _newest_undoable_job(commits)
        newest_commit = next((commit for commit in commits if commit.job == job_id), None)
        if newest_commit is None:
            if path is None:
                read_context.reader.preview_undo(job_id)  # raises with the reason
            raise UsageError(
                f"Job {job_id} changed nothing in {short_path(str(path))}. `echod log` lists the jobs that did."
            )
        plan = _UndoPlan(job_id, newest_commit, read_context.reader.preview_undo(job_id), None)
        if force or plan.is_global:
            return plan
        return plan._replace(workflow=build_manual_gate(context, read_context.project_gate, plan.project)())


def _select_undo_stores(context: CommandContext, path: Path | None, *, in_all: bool) -> tuple[Store, ...] | None:
    """Return the stores whose newest job may be undone; None for all.

    Outside of a project the user's own global store is meant, if the newest change is one of it.

    Raises:
        UsageError: there is no project, or the newest change is one of a project that is not named.
    """
    if path is None and not in_all and context.current_project() is None:
        with context.open_read_context() as read_context:
            newest = next(iter(read_context.reader.history(None)), None)
            if newest is not None and global_root(newest.store) is not None:
                return read_context.pack_locations.stores
    project = select_project_to_change(context, path, in_all=in_all)
    if project is None:
        return None
    if context.paths.journal.exists():
        with context.open_services() as services:
            adopt_moved(context, services, [project])
    return context.list_stores(project)


def _newest_undoable_job(commits: Iterable[CommitInfo]) -> int:
    newest = next(_undoable_jobs(commits), None)
    if newest is None:
        raise UsageError("There is no job to undo here. `echod log` lists the changes.")
    return newest


def _undoable_jobs(commits: Iterable[CommitInfo]) -> Iterator[int]:
    """Yield the jobs that are not undone, the newest first. An undo is only undone by its number."""
    for commit in commits:
        if commit.job is not None and commit.undone_by is None and commit.kind != JobKind.UNDO:
            yield commit.job


def _plan_lines(plan: _UndoPlan, now: float, *, max_lines: int) -> Iterator[str]:
    commit = plan.newest_commit
    name = f"{commit.kind} {commit.role.name}".strip()
    yield f"Job {plan.job_id}: {name}  {short_path(commit.store.key)}  {format_timestamp(commit.at, now)}"
    yield wrap(sanitize(commit.summary), indent="  ")
    yield "Undo will:"
    lines = [line for preview in plan.previews for line in _preview_lines(preview)]
    if not lines:
        yield (
            "  change no memory file, but restore the manifest of the pack"
            if plan.is_pack
            else "  change no memory: the job changed none, or other programs have reversed it"
        )
    yield from lines[:max_lines]
    if len(lines) == max_lines + 1:
        yield lines[max_lines]
    elif len(lines) > max_lines:
        yield f"  ... and {len(lines) - max_lines} more (all with --dry-run)"
    if any(preview.removed_blocks or preview.removed_files for preview in plan.previews):
        yield "Removed text is kept in the archive of the role."
    if not all(preview.exact for preview in plan.previews):
        yield "The memory was changed since. Changes by other programs stay."
    if any(preview.redacted for preview in plan.previews):
        yield wrap("Removed secrets are no longer stored. The text is restored without them.")


def _preview_lines(preview: UndoPreview) -> Iterator[str]:
    for path in preview.restored_files:
        yield wrap(sanitize(path), indent="  restore the file   ")
    for path in preview.removed_files:
        yield wrap(sanitize(path), indent="  remove the file    ")
    for block in preview.restored_blocks:
        yield wrap(title_text(block_title(block)), indent="  restore the entry  ")
    for block in preview.removed_blocks:
        yield wrap(title_text(block_title(block)), indent="  remove the entry   ")


def _run_undo_job(plan: _UndoPlan, runner: JobRunner) -> str:
    context, services = runner.context, runner.services
    pins: list[str] = []

    def work(resources: JobResources) -> JobOutcome:
        undo_result = services.engine.undo(plan.job_id, by_job=resources.job_id, gate=resources.gate)
        today = local_date(context.now())
        until = today + timedelta(days=services.settings.policy.pin_days)
        commit = plan.newest_commit
        if number := pin_restored(services.entries, commit.store, commit.kind, undo_result, today, until):
            noun = pluralize(number, "entry is", "entries are")
            pins.append(f"{noun} pinned until {until}: no rule removes {'it' if number == 1 else 'them'} until then.")
        if plan.is_global:
            sync_manifests(services.engine, plan.project)
        return JobDone(f"undid job {plan.job_id}: {plan.newest_commit.summary}", changed=True)

    manual_job = ManualJob(JobKind.UNDO, plan.newest_commit.role, f"the user undoes job {plan.job_id}")
    job_id = runner.run_multi_role(manual_job, work).job.id
    return "\n".join((f"Undone, as job {job_id}. To redo: echod undo {job_id}", *map(wrap, pins)))
