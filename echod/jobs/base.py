"""The parts that job kinds share: context, outcomes, change sets, the loop from a plan to a commit, and the archive."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from echod.clock import local_date
from echod.files import read_regular
from echod.lazy import lazy_pattern
from echod.memory import MAX_FILE_BYTES, MEMORY_FILE
from echod.memory.archive import (
    PRUNED_STEM,
    REMOVED_STEM,
    ArchivedEntry,
    read_archive,
    render_archived_entries,
    select_archive_file,
)
from echod.memory.document import parse
from echod.memory.model import Document, Unreadable
from echod.memory.policy_model import PolicySettings
from echod.memory.redact import redact_entry
from echod.state.entries import EntryStore
from echod.state.jobs import MANUAL_KINDS, JobKind
from echod.store import layout
from echod.store.changes import Append, ChangeSet, CommitGate, CommitResult, ConsumeFindings, Origin, Write
from echod.store.engine import Engine, RoleSession, RoleView
from echod.store.errors import as_store_error
from echod.store.layout import Role

RETRY_SECONDS = 10.0
"""The deferral of a job when another program is writing the same files."""

_MAX_PLANS = 5
"""The engine accepts a plan after few retries. More of them happen only if another program never stops writing."""


@dataclass(frozen=True, slots=True)
class JobDone:
    """The job completed. `changed` is false if there was nothing to do, or nothing may be written.

    `skipped` has a sentence for each file that was left unchanged although it should have been changed.
    """

    summary: str
    changed: bool
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobDeferred:
    """The job has to wait, and checks again at `until` (Unix seconds) at the latest."""

    reason: str
    until: float


@dataclass(frozen=True, slots=True)
class JobBlocked:
    """A retry is pointless until the input changes. The user may have to act."""

    reason: str


@dataclass(frozen=True, slots=True)
class JobFailed:
    """The job failed and is retried after growing pauses."""

    error: str


@dataclass(frozen=True, slots=True)
class JobStalled(JobFailed):
    """The job failed because a disk is full. It is retried every minute until there is room, and never given up."""


JobOutcome = JobDone | JobDeferred | JobBlocked | JobFailed


class JobContext(NamedTuple):
    """The arguments of every job kind: its number, the locked role, and the collaborators.

    Attributes:
        job_id: the number under which the job's commit is recorded.
        gate: called just before the point of no return of a commit.
        clock: returns Unix seconds.
        allow_writes: false in report mode, in which a job only reports what it would do.
    """

    job_id: int
    session: RoleSession
    entries: EntryStore
    policy: PolicySettings
    gate: CommitGate
    clock: Callable[[], float]
    allow_writes: bool = True


class JobResources(NamedTuple):
    """A job before a role is locked: the engine that opens roles, and the other fields of its `JobContext`.

    For jobs that lock several roles, or one role several times.
    """

    job_id: int
    engine: Engine
    entries: EntryStore
    policy: PolicySettings
    gate: CommitGate
    clock: Callable[[], float]
    allow_writes: bool = True

    @contextmanager
    def open_role(self, role: Role) -> Iterator[JobContext]:
        """Lock a role for the job. Raises the errors of `Engine.open_role`."""
        with self.engine.open_role(role) as session:
            yield JobContext(self.job_id, session, self.entries, self.policy, self.gate, self.clock, self.allow_writes)


def _do_nothing() -> None:
    """Do nothing before or after the commit."""


class Proposal(NamedTuple):
    """The changes that a job plans.

    `before_commit` is called just before each attempt to commit, but not in report mode; `after_commit` once the
    changes are on the disk, to record them in the database.
    """

    changes: ChangeSet
    before_commit: Callable[[], None] = _do_nothing
    after_commit: Callable[[], None] = _do_nothing
    skipped: tuple[str, ...] = ()


Planner = Callable[[RoleView, date], Proposal | JobOutcome]
"""Plans from the state of a role on a local day. Returns an outcome if there is nothing to change, or not now."""

MemoryPlanner = Callable[[RoleView, Document, date], Proposal | JobOutcome]
"""A planner for a memory file that can be parsed."""


def plan_memory_and_commit(context: JobContext, planner: MemoryPlanner) -> JobOutcome:
    """Plan from the parsed memory file, and commit. An unreadable file blocks the job."""

    def plan(view: RoleView, today: date) -> Proposal | JobOutcome:
        document = parse_memory(view)
        return document if isinstance(document, JobBlocked) else planner(view, document, today)

    return plan_and_commit(context, plan)


def plan_and_commit(context: JobContext, planner: Planner) -> JobOutcome:
    """Plan from the state of the role, and commit."""
    return replan_and_commit(context, lambda: planner(context.session.read(), local_date(context.clock())))


def replan_and_commit(context: JobContext, plan: Callable[[], Proposal | JobOutcome]) -> JobOutcome:
    """Plan and commit, and plan again whenever another program wrote in between."""
    for _ in range(_MAX_PLANS):
        proposal = plan()
        if not isinstance(proposal, Proposal):
            return proposal
        summary = proposal.changes.summary
        if not context.allow_writes:
            return report_only(summary)
        proposal.before_commit()
        result = context.session.commit(context.job_id, proposal.changes, gate=context.gate)
        if isinstance(result, CommitResult):
            proposal.after_commit()
            return JobDone(summary, changed=True, skipped=proposal.skipped)
    return JobDeferred("other programs keep writing the same files", context.clock() + RETRY_SECONDS)


def report_only(summary: str) -> JobDone:
    """Return the outcome of a job in report mode."""
    return JobDone(f"report only: would do: {summary}", changed=False)


def change_set(
    view: RoleView,
    kind: JobKind,
    summary: str,
    writes: Iterable[Write] = (),
    *,
    appends: Iterable[Append] = (),
    consumes: Iterable[ConsumeFindings] = (),
) -> ChangeSet:
    """Return the change set of a job on the role of `view`. Only manual kinds may change protected content."""
    return ChangeSet(
        kind=kind.value,
        role=view.role.name,
        summary=summary,
        writes=tuple(writes),
        appends=tuple(appends),
        consumes=tuple(consumes),
        origin=Origin.USER if kind in MANUAL_KINDS else Origin.SERVICE,
    )


def write_memory(view: RoleView, data: bytes) -> Write:
    """Return the replacement of the memory file that the job planned from."""
    return Write(role_path(view, layout.MEMORY), view.memory.digest, data)


def role_path(view: RoleView, name: str | PurePosixPath) -> PurePosixPath:
    """Return the path of a file of the role, relative to its store, as change sets use it."""
    return PurePosixPath(view.role.name) / name


def parse_memory(view: RoleView) -> Document | JobBlocked:
    """Parse the memory file, or return the outcome for a file that cannot be parsed."""
    document = parse(view.memory.text)
    if isinstance(document, Unreadable):
        return JobBlocked(f"{layout.MEMORY} is left alone: {document.reason}")
    return document


def knowledge_unavailable(view: RoleView, now: float) -> JobDeferred | JobBlocked | None:
    """Return the outcome of a job that needs the knowledge file while it cannot be read; None if it can."""
    problem = view.knowledge_problem
    if problem is None:
        return None
    return JobBlocked(problem.reason) if problem.permanent else JobDeferred(problem.reason, now + RETRY_SECONDS)


_BACKUP_NAME = lazy_pattern(r"MEMORY-(?P<day>\d{4}-\d{2}-\d{2})(?:-\d+)?\.md")
_ARCHIVE_DIRECTORY = "archive"
_BACKUP_PREFIX = "MEMORY-"


class ArchivedCopy(NamedTuple):
    """An archived entry, and the file that contains it, relative to the role."""

    file: str
    entry: ArchivedEntry


def pruned_archive_sizes(role: Role) -> Mapping[str, int]:
    """Return the sizes in bytes of the archive files for pruned entries, by name."""
    return _archive_sizes(role, PRUNED_STEM)


def removed_archive_sizes(role: Role) -> Mapping[str, int]:
    """Return the sizes in bytes of the archive files for entries that the user removed, by name."""
    return _archive_sizes(role, REMOVED_STEM)


def append_pruned(role: Role, today: date, entries: Iterable[ArchivedEntry], job_id: int) -> tuple[Append, ...]:
    """Return the append to the archive for entries that a rule removes; empty for no entries."""
    return _append(role, today, render_archived_entries(entries, job_id), PRUNED_STEM)


def append_removed(role: Role, today: date, entries: Iterable[ArchivedEntry], job_id: int) -> tuple[Append, ...]:
    """Return the append to the archive for entries that the user removes; empty for no entries."""
    return _append(role, today, render_archived_entries(entries, job_id), REMOVED_STEM)


def append_short_form(role: Role, text: str | None, today: date) -> tuple[Append, ...]:
    """Return the append to the archive for the short form of an entry whose full text is restored."""
    if text is None:
        return ()
    data = f"\n<!-- echod: gave way to its full text, {today.isoformat()} -->\n{redact_entry(text).text.rstrip()}\n"
    return _append(role, today, data.encode(), REMOVED_STEM)


def list_archived_entries(role: Role) -> tuple[ArchivedCopy, ...]:
    """List every entry in the archive of a role, oldest first. Backups are excluded.

    Raises:
        StoreError: the archive cannot be read.
    """
    with as_store_error("read the archive of", role.path):
        names = [
            e.name for e in _archive_files(role, "") if e.name.endswith(".md") and not e.name.startswith(_BACKUP_PREFIX)
        ]
        copies = [
            ArchivedCopy(f"{_ARCHIVE_DIRECTORY}/{name}", entry)
            for name in sorted(names, key=lambda name: (len(name), name))
            for entry in read_archive(read_regular(role.path / _ARCHIVE_DIRECTORY / name, MAX_FILE_BYTES)).entries
        ]
    return tuple(sorted(copies, key=lambda copy: (copy.entry.day, copy.entry.job or 0)))


class MemoryBackup(NamedTuple):
    """A memory file as it was on a day before a change."""

    day: date
    data: bytes


def read_backups(role: Role) -> tuple[MemoryBackup, ...]:
    """Return the backups of a role's memory file, oldest first.

    Raises:
        StoreError: one of them cannot be read.
    """
    with as_store_error("read the archive of", role.path):
        backups = [
            MemoryBackup(day, read_regular(Path(entry.path), MAX_FILE_BYTES))
            for entry in sorted(_archive_files(role, _BACKUP_PREFIX), key=lambda entry: (len(entry.name), entry.name))
            if (match := _BACKUP_NAME.fullmatch(entry.name)) and (day := _to_day(match["day"])) is not None
        ]
    return tuple(sorted(backups, key=lambda backup: backup.day))


def _to_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def append_to_archive(path: PurePosixPath, entries: Iterable[ArchivedEntry], job_id: int) -> tuple[Append, ...]:
    """Return the append of these entries to an archive file; empty for no entries."""
    text = render_archived_entries(entries, job_id)
    return (Append(path, text),) if text else ()


def backup_name(role: Role, data: bytes, today: date) -> str | None:
    """Return an unused name, relative to the role, for a backup of its memory file; None if an identical one exists."""
    for entry in _archive_files(role, _BACKUP_PREFIX):
        same_size = entry.stat(follow_symlinks=False).st_size == len(data)
        if same_size and _BACKUP_NAME.fullmatch(entry.name) and read_regular(Path(entry.path), len(data)) == data:
            return None
    return free_backup_name(role, today)


def free_backup_name(role: Role, today: date, file: str = MEMORY_FILE) -> str:
    """Return an unused name, relative to the role, for a backup of its memory file or another `file`."""
    stem = file.removesuffix(".md")
    used = {entry.name for entry in _archive_files(role, f"{stem}-")}
    number, name = 1, f"{stem}-{today.isoformat()}.md"
    while name in used:
        number += 1
        name = f"{stem}-{today.isoformat()}-{number}.md"
    return f"{_ARCHIVE_DIRECTORY}/{name}"


def _append(role: Role, today: date, text: bytes, stem: str) -> tuple[Append, ...]:
    """Return the append of a text to an archive file that has room for it; empty for no text."""
    if not text:
        return ()
    archive = select_archive_file(today.year, _archive_sizes(role, stem), len(text), stem=stem)
    return (Append(PurePosixPath(role.name) / archive, text),)


def _archive_sizes(role: Role, stem: str) -> Mapping[str, int]:
    return {entry.name: entry.stat(follow_symlinks=False).st_size for entry in _archive_files(role, f"{stem}-")}


def _archive_files(role: Role, prefix: str) -> Iterator[os.DirEntry[str]]:
    """Yield the regular files of a role's archive with this prefix. A symlinked archive counts as empty."""
    directory = role.path / _ARCHIVE_DIRECTORY
    if directory.is_symlink() or not directory.is_dir():
        return
    with os.scandir(directory) as entries:
        yield from (e for e in entries if e.name.startswith(prefix) and e.is_file(follow_symlinks=False))
