"""Find the directory of archives that a command of `echod sessions` is about, and undo what changed there.

The last section does the same for changes of auto memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from echod.app.context import ReadContext
from echod.auto_memory.changes import ChangeRecordError, MemoryChange, MemoryChanges
from echod.auto_memory.places import AGENT_DIRECTORIES, default_directory, find_places, memory_project
from echod.cli.context import CommandContext
from echod.cli.execute import Change, Confirmation, JobRunner, ManualJob, Step
from echod.cli.output import format_timestamp, sanitize, short_path, wrap
from echod.contract.commands import LoggedJob
from echod.errors import EchodError, UsageError
from echod.jobs.base import JobDone, JobOutcome, JobResources
from echod.paths import claude_home
from echod.sessions.archiver import Archiver
from echod.sessions.journal import RootJournal, RootRecord
from echod.sessions.roots import MEMORY_DIRECTORY, PRIVATE, SessionError, SessionRoot
from echod.state.jobs import JobKind
from echod.store.layout import Role, Store


class SelectedRoot(NamedTuple):
    """A directory of archives, and its project; None if the user named the directory."""

    root: SessionRoot
    project: Path | None


class SessionChange(NamedTuple):
    """A change in a directory of archives."""

    root: SessionRoot
    record: RootRecord


def select_root(context: CommandContext, read_context: ReadContext, root: Path | None) -> SelectedRoot:
    """Return the named directory, else that of the current project.

    Raises:
        UsageError: no directory is named, and the current directory is in no project.
    """
    if root is not None:
        return SelectedRoot(SessionRoot(absolute_root(context, root)), None)
    try:
        project = context.find_project(Path())
    except UsageError as error:
        raise UsageError(
            "The current directory is in no project with a memory. Name a directory with --root."
        ) from error
    return SelectedRoot(read_context.session_projects.root(project), project)


def absolute_root(context: CommandContext, root: Path) -> Path:
    """Return the absolute form of a directory that the user named."""
    return context.absolute_path(root)


def job_role(root: SessionRoot) -> Role:
    """Return the name of a directory in the queue: `echod jobs` shows it like a role of a store."""
    return Role(Store(root.entity, root.memory), "")


def list_changes(read_context: ReadContext, projects: Iterable[Path] | None) -> Iterator[SessionChange]:
    """Yield the changes in the directories of these projects (None: in all that are known), the oldest first in each.

    A directory whose records cannot be read is left out.
    """
    for root in _known_roots(read_context, projects):
        try:
            records = RootJournal(root).records()
        except SessionError:
            continue
        for record in records:
            if record.done and record.kind != "summary-failed":
                yield SessionChange(root, record)


def _known_roots(read_context: ReadContext, projects: Iterable[Path] | None) -> Iterator[SessionRoot]:
    selected = tuple(projects) if projects is not None else read_context.discover_stores().projects
    roots = [root for project in selected for root in read_context.session_projects.roots(project)]
    if projects is None and read_context.session_log is not None:
        # Also directories that the user named with --root.
        roots += [
            SessionRoot(path.parent)
            for key in read_context.session_log.list_roots()
            if (path := Path(key)).name == MEMORY_DIRECTORY
        ]
    yield from (root for root in dict.fromkeys(roots) if root.private.is_dir())


_MAX_SHOWN_FILES = 12


def logged_changes(read_context: ReadContext, projects: Iterable[Path] | None) -> Iterator[LoggedJob]:
    """Yield a row of `echod log` for each job that changed archives."""
    rows: dict[tuple[int | None, str], LoggedJob] = {}
    for root, record in list_changes(read_context, projects):
        key = (record.job if record.job is not None else -record.seq, root.key)
        known = rows.get(key)
        summary = record.summary if known is None else f"{known.summary}; {record.summary}"
        # Undone only when all of its changes are.
        undone_by = record.undone_by if known is None or known.undone_by is not None else None
        rows[key] = LoggedJob(record.job, record.kind, root.key, "", record.at, summary, undone_by)
    yield from rows.values()


def newest_session_job(read_context: ReadContext, projects: Iterable[Path] | None) -> int:
    """Return the newest job that changed archives of these projects (None: of all) and is not undone; 0 without one."""
    return max(
        (
            change.record.job
            for change in list_changes(read_context, projects)
            if change.record.job is not None
            and change.record.undone_by is None
            and change.record.undoes is None
            and change.record.undoable
        ),
        default=0,
    )


def find_undo(
    context: CommandContext, read_context: ReadContext, job_id: int, projects: Iterable[Path] | None
) -> tuple[SessionChange, ...]:
    """Return the changes of archives that a job made and that are not undone, the newest first.

    Empty if the job changed no archives of these projects; None means all.

    Raises:
        UsageError: it cannot be undone any more; the text is the reason.
    """
    selected = [change for change in list_changes(read_context, projects) if change.record.job == job_id]
    pending = sorted((one for one in selected if one.record.undone_by is None), key=lambda one: -one.record.seq)
    if not selected:
        return ()
    newest = pending[0] if pending else selected[-1]
    if (problem := RootJournal(newest.root).undo_problem(newest.record, context.now())) is not None:
        raise UsageError(problem)
    return tuple(pending)


def undo_change(context: CommandContext, changes: Sequence[SessionChange]) -> Change:
    """Return the undo of these changes of one job."""
    return Change(
        preview="\n".join(_preview_lines(changes, context.now())),
        steps=[_undo_step(context, changes)],
        question=Confirmation(f"Undo job {changes[0].record.job}?"),
    )


def _preview_lines(changes: Sequence[SessionChange], now: float) -> Iterator[str]:
    newest = changes[0]
    record = newest.record
    yield f"Job {record.job}: {record.kind}  {short_path(newest.root.key)}  {format_timestamp(record.at, now)}"
    for change in changes[:_MAX_SHOWN_FILES]:
        yield wrap(sanitize(change.record.summary), indent="  ")
    yield "Undo will:"
    steps = {
        step.path: step.before is None
        for change in changes
        for step in change.record.steps
        if not step.path.startswith(PRIVATE)
    }
    for path, is_new in list(steps.items())[:_MAX_SHOWN_FILES]:
        yield f"  {'remove' if is_new else 'restore'} the file   {sanitize(path)}"
    if len(steps) > _MAX_SHOWN_FILES:
        yield f"  ... and {len(steps) - _MAX_SHOWN_FILES} more files"


def _undo_step(context: CommandContext, changes: Sequence[SessionChange]) -> Step:
    root, job = changes[0].root, changes[0].record.job

    def step(runner: JobRunner) -> str:
        archiver = Archiver(root, runner.services.session_log, context.now)

        def work(resources: JobResources) -> JobOutcome:
            with archiver.opened():
                for change in changes:
                    archiver.undo(change.record, resources.job_id)
            return JobDone(f"undid job {job}: {changes[0].record.summary}", changed=True)

        manual_job = ManualJob(JobKind.UNDO, job_role(root), f"the user undoes job {job}")
        number = runner._replace(force=True).run_multi_role(manual_job, work).job.id
        return f"Undone, as job {number}. To redo: echod undo {number}"

    return Step(f"job {job}", step)


# Auto memory


def memory_job_role(directory: Path) -> Role:
    """Return the name of a directory in the queue: `echod jobs` shows it like a role of a store."""
    return Role(Store(directory.parent, directory), "")


def logged_memory_changes(context: CommandContext, projects: Iterable[Path] | None) -> Iterator[LoggedJob]:
    """Yield a row of `echod log` for each change of the auto memory of these projects; None means all."""
    try:
        records = _memory_changes(context, projects)
    except EchodError:
        return  # the next change reports it
    for record in records:
        yield LoggedJob(record.job, record.kind, record.directory, "", record.at, record.summary, record.undone_by)


def _memory_changes(context: CommandContext, projects: Iterable[Path] | None) -> list[MemoryChange]:
    """Return the changes of the auto memory of these projects, the oldest first; None means all.

    Raises:
        ChangeRecordError: a record cannot be read.
    """
    if not context.paths.auto_memory.is_dir():
        return []
    records = MemoryChanges(context.paths.auto_memory).records()
    if projects is None:
        return list(records)
    home = claude_home(context.environ)
    directories: set[Path] = set()
    of_agents: set[Path] = set()
    for project in dict.fromkeys(root for path in projects for root in (path, memory_project(path))):
        directories.add(default_directory(home, project))
        directories.update(place.path for place in find_places(home, (), only=project).places)
        of_agents.update(project / ".claude" / name for name in AGENT_DIRECTORIES)
    return [
        record
        for record in records
        if (directory := Path(record.directory)) in directories or directory.parent in of_agents
    ]


def find_memory_undo(
    context: CommandContext, job: int | None, projects: Iterable[Path] | None = None
) -> MemoryChange | None:
    """Return the change of auto memory that a job made. Without a job: the newest one of these projects, or of all.

    None if there is no such change.

    Raises:
        ChangeRecordError: it was undone already, or a record cannot be read.
    """
    records = _memory_changes(context, projects if job is None else None)
    if job is None:
        return next((one for one in reversed(records) if one.undone_by is None and one.undoes is None), None)
    record = next((one for one in records if one.job == job), None)
    if record is not None and record.undone_by is not None:
        raise ChangeRecordError(f"Job {job} was undone already, by job {record.undone_by}.")
    return record


def undo_memory_change(context: CommandContext, record: MemoryChange) -> Change:
    """Return the undo of a change of auto memory."""
    made_at = format_timestamp(record.at, context.now())
    lines = [
        f"Job {record.job}: {record.kind}  {short_path(record.directory)}  {made_at}",
        wrap(sanitize(record.summary), indent="  "),
        "Undo will:",
        *(
            f"  {'remove' if change.before is None else 'restore'} the file   {sanitize(change.name)}"
            for change in record.files[:_MAX_SHOWN_FILES]
        ),
    ]

    def step(runner: JobRunner) -> str:
        def work(resources: JobResources) -> JobOutcome:
            changes = MemoryChanges(context.paths.auto_memory)
            changes.recover()
            changes.undo(record, job=resources.job_id, now=context.now())
            return JobDone(f"undid job {record.job}: {record.summary}", changed=True)

        manual_job = ManualJob(
            JobKind.UNDO, memory_job_role(Path(record.directory)), f"the user undoes job {record.job}"
        )
        number = runner._replace(force=True).run_multi_role(manual_job, work).job.id
        return f"Undone, as job {number}. To redo: echod undo {number}"

    return Change("\n".join(lines), [Step(f"job {record.job}", step)], Confirmation(f"Undo job {record.job}?"))
