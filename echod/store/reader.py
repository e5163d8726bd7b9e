"""Read-only access to stores and their journal: takes no lock, repairs nothing, writes nothing.

Contains the history of commits, for `echod log` and for choosing a commit to undo, and the items for the user.

Commands that read a hundred projects at once import this module, so the modules that merge and commit memory are
imported only by the methods that open a role.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from echod.errors import GARBLED_ERRORS, EchodError, isolated
from echod.files import FileVersion, content_digest, read_regular
from echod.lazy import lazy_imports
from echod.log import get_logger
from echod.memory import MAX_FILE_BYTES
from echod.memory.model import Document
from echod.store.commit.context import CommitContext, ParseCache, Tracer, no_trace
from echod.store.errors import AlreadyUndoneError, EngineLimits, RefusedError, StoreError, as_store_error
from echod.store.fs import CapabilityCache
from echod.store.journal.files import BlobMissingError, version_of
from echod.store.journal.journal import Journal, RoleJournal
from echod.store.journal.ledger import (
    NOTICES,
    PROPOSAL,
    QUESTIONS,
    Notice,
    Notices,
    Question,
    read_notices,
    read_questions,
)
from echod.store.journal.records import CommitRecord, Reading, RecordState, Timeline, WriteRecord
from echod.store.layout import MEMORY, Role, Store, store_at
from echod.store.role import RoleDirectory, RoleLock, open_role_directory

with lazy_imports(__name__):
    from echod.store import engine as session_module
    from echod.store import undo
    from echod.store.healing import heal

if TYPE_CHECKING:
    from echod.store.engine import RoleView
    from echod.store.undo import UndoPreview

log = get_logger(__name__)


class CommitInfo(NamedTuple):
    """One commit."""

    store: Store
    role: Role
    seq: int
    job: int | None  # the job it was made for; None for healing and late writes
    kind: str
    summary: str
    at: float  # Unix seconds
    undone_by: int | None  # the job that undid it; None if it was not undone


class MemoryCommit(NamedTuple):
    """One commit that wrote the memory file, and the file before and after it."""

    info: CommitInfo
    before: Document
    after: Document


class FileCommit(NamedTuple):
    """One file that a commit wrote or consumed. Paths are relative to the store.

    `before` and `after` are None if the file did not exist, or if `is_known` is false and the journal has no copy.
    `archive` is where the text of a consumed findings file is.
    """

    path: str
    before: bytes | None
    after: bytes | None
    archive: str | None = None
    is_known: bool = True


def _is_being_committed(journal: RoleJournal) -> bool:
    return any(record.state is RecordState.INTENT for record in journal.open_records())


def _file_commit(journal: RoleJournal, write: WriteRecord) -> FileCommit:
    try:
        before = journal.blobs.get(write.before_digest) if write.before_digest else None
        return FileCommit(write.path, before, journal.blobs.get(write.after_digest))
    except BlobMissingError:
        return FileCommit(write.path, None, None, is_known=False)


def list_records(journal: Journal, role: Role) -> tuple[CommitRecord, ...]:
    """Return a role's commit records, oldest first."""
    role_journal = journal.role_journal(role)
    # In this order, because another process may close a record between the two listings.
    open_records = role_journal.open_records()
    by_seq = {record.seq: record for record in (*open_records, *role_journal.closed_records())}
    return tuple(by_seq[seq] for seq in sorted(by_seq))


def _role_commits(journal: Journal, role: Role, now: float) -> list[CommitInfo]:
    records = list_records(journal, role)
    undone = {seq: record.job for record in records for seq in record.undoes}
    timeline = Timeline((Reading(record.at, record.clock) for record in records), now)
    times = [timeline.estimate(record.at, now) for record in records]
    return [
        CommitInfo(role.store, role, r.seq, r.job, r.kind, r.summary, at, undone.get(r.seq))
        for r, at in zip(records, times, strict=True)
    ]


class StoreReader:
    """Read-only access to all stores and their journal."""

    def __init__(
        self, journal: Path, *, limits: EngineLimits, clock: Callable[[], float], trace: Tracer = no_trace
    ) -> None:
        self._journal = Journal(journal)
        self._limits = limits
        self._clock = clock
        self._trace = trace
        self._parse_cache = ParseCache()
        self._capabilities = CapabilityCache()
        # the last comparison of each memory file with its newest known state: file version and digest
        self._compared: dict[Role, tuple[FileVersion, str]] = {}

    def read_role(self, role: Role) -> RoleView:
        """Read a role without lock and healing (report mode, dry runs). `BusyError` if its memory is being written."""
        with self.open_read_only(role) as session:
            return session.read()

    @contextmanager
    def open_read_only(self, role: Role) -> Iterator[session_module.RoleSession]:
        """Open a session that takes no lock, repairs nothing and refuses every commit (report mode, dry runs)."""
        # See the module's docstring.
        with as_store_error("read", role.path), open_role_directory(role) as directory:
            yield session_module.RoleSession(self._build_context(directory), session_module.read_raw_memory)

    def has_open_commits(self, store: Store) -> bool:
        """Return whether commits of a store are still followed, so that `merge_late_writes` may find late writes."""
        with as_store_error("read the journal in", self._journal.root):
            return any(self._journal.role_journal(role).open_records() for role in self._journal.roles(store))

    def roles_changed_by_others(self, store: Store) -> tuple[Role, ...]:
        """Return the roles whose memory file another program has changed since echod last read it for a commit."""
        with as_store_error("read the journal in", self._journal.root):
            roles = self._journal.roles(store)
            return tuple(role for role in roles if self._is_changed_by_others(role))

    def _is_changed_by_others(self, role: Role) -> bool:
        journal = self._journal.role_journal(role)
        try:
            if not journal.may_be_outdated(role.memory) or _is_being_committed(journal):
                return False
            version, newest = version_of(role.memory), journal.newest_state()
        except OSError as error:
            if error.filename != str(role.memory):
                raise
            return False  # the status reports a memory that cannot be read
        if version is None or newest is None:
            return False
        if self._compared.get(role) != (version, newest.digest):
            try:
                digest = content_digest(read_regular(role.memory, MAX_FILE_BYTES, follow_symlinks=False))
            except OSError:
                return False  # the status reports it
            if digest != newest.digest:
                return True
            self._compared[role] = (version, newest.digest)
        return False

    def find_overwritten(self, store: Store) -> Iterator[Notice]:
        """Yield a notice for each role with entries that another program overwrote, before anything restores them."""
        for role in self.journaled_roles(store):
            try:
                titles = self._overwritten_titles(role)
            except EchodError:
                continue  # it is being written, its journal is damaged, or the status reports it
            if titles:
                yield heal.overwritten_notice(role.name, titles, role.memory.stat().st_mtime)

    def _overwritten_titles(self, role: Role) -> tuple[str, ...]:
        with as_store_error("read", role.path):
            if not self._is_changed_by_others(role):
                return ()
            with open_role_directory(role) as directory:
                return heal.find_missing_blocks(self._build_context(directory))

    def history(self, stores: Iterable[Store] | None = None) -> tuple[CommitInfo, ...]:
        """Return the commits in the journal, newest first, of these stores or of every store with a journal."""
        with as_store_error("read the journal in", self._journal.root):
            selected = self._journal.stores() if stores is None else stores
            roles = [role for store in selected for role in self._journal.roles(store)]
            now = self._clock()
            commits = [info for role in roles for info in _role_commits(self._journal, role, now)]
        return tuple(sorted(commits, key=lambda info: (info.at, info.seq), reverse=True))

    def memory_commits(self, role: Role) -> tuple[MemoryCommit, ...]:
        """Return the commits of a role that wrote its memory file, oldest first, with the file before and after each.

        A commit whose contents are no longer in the journal is left out.
        """
        journal, path = self._journal.role_journal(role), str(PurePosixPath(role.name, MEMORY))
        commits = []
        with as_store_error("read the journal in", self._journal.root):
            infos = {info.seq: info for info in _role_commits(self._journal, role, self._clock())}
            for record in list_records(self._journal, role):
                for write in record.writes:
                    if write.path == path and record.state is not RecordState.INTENT:
                        before = self._parse_cache.parse_before(journal, write.before_digest)
                        after = self._parse_cache.parse_blob(journal, write.after_digest)
                        if before is not None and after is not None:
                            commits.append(MemoryCommit(infos[record.seq], before, after))
        return tuple(commits)

    def undone_jobs(self, role: Role) -> frozenset[int]:
        """Return the jobs that were undone in a role and not redone, however long ago."""
        with as_store_error("read the journal in", self._journal.root):
            return self._journal.role_journal(role).undo_index.undone_jobs()

    def file_commits(self, info: CommitInfo) -> tuple[FileCommit, ...]:
        """Return the files that a commit wrote, with their contents before and after it, and those it consumed."""
        journal = self._journal.role_journal(info.role)
        with as_store_error("read the journal in", self._journal.root):
            record = self._find_record(info)
            return (
                *(_file_commit(journal, write) for write in record.writes),
                *(FileCommit(consume.path, None, None, consume.archive) for consume in record.consumes),
            )

    def highest_job(self) -> int:
        """Return the highest job number in the journal, after which a rebuilt database must continue; 0 for none."""
        jobs = [0]
        with as_store_error("read the journal in", self._journal.root):
            roles = [role for store in self._journal.stores() for role in self._journal.roles(store)]
        for role in roles:
            with isolated(f"The journal of {role.path}"):
                commits = _role_commits(self._journal, role, self._clock())
                jobs += [info.job for info in commits if info.job is not None]
        return max(jobs)

    def preview_undo(self, job: int) -> tuple[UndoPreview, ...]:
        """Return the effect that `Engine.undo` would have now, newest commit first. Read-only, takes no lock.

        Refused if the job is unknown, too old or already undone, or a file has changed too much.
        """
        return tuple(self._preview_commit(info) for info in self._undoable_commits(job))

    def collect_notices(self, store: Store) -> Notices:
        """Return the items for the user in a store's journal.

        Roles whose journal cannot be read are left out. No job runs there either, and the jobs report the error.
        """
        notices: list[Notice] = []
        questions: list[Question] = []
        restored_findings: dict[Role, frozenset[str]] = {}
        for role in self.journaled_roles(store):
            journal = self._journal.role_journal(role)
            try:
                with as_store_error("read the journal in", journal.root):
                    files = journal.notice_files()
                    if NOTICES in files:
                        notices += read_notices(journal.root)
                    if files - {NOTICES, QUESTIONS} and (restored := journal.undo_index.restored_findings()):
                        restored_findings[role] = restored
                    if QUESTIONS in files and (asked := read_questions(journal.root)):
                        consumed_keys = journal.consumed_keys()
                        questions += [q for q in asked if q.kind == PROPOSAL or q.key in consumed_keys]
            except StoreError as error:
                log.info("role_unreadable", role=str(role.path), reason=str(error))
            except GARBLED_ERRORS:
                log.exception("role_unreadable", role=str(role.path))
        notices += self.find_overwritten(store)
        return Notices(
            tuple(sorted(notices, key=lambda notice: notice.at)),
            tuple(sorted(questions, key=lambda question: question.at)),
            restored_findings,
        )

    def own_mtime(self, file: Path) -> int | None:
        """Return the mtime (nanoseconds) of a memory or knowledge file as echod last left it; None if it never did."""
        role = Role(store_at(file.parent.parent), file.parent.name)
        return self._journal.role_journal(role).own_mtimes().get(str(file.relative_to(role.store.root)))

    def own_mtimes(self, store: Store) -> Mapping[Path, int]:
        """Return the files of a store with their mtime in nanoseconds as echod last left them.

        A file with another mtime was written by another program.
        """
        return {
            store.root / path: mtime
            for role in self.journaled_roles(store)
            for path, mtime in self._journal.role_journal(role).own_mtimes().items()
        }

    def journaled_roles(self, store: Store) -> tuple[Role, ...]:
        """Return the roles of a store with commits, including roles that no longer exist."""
        with as_store_error("read the journal in", self._journal.root):
            return self._journal.roles(store)

    def _undoable_commits(self, job: int) -> list[CommitInfo]:
        """Return the commits of a job that can be undone, newest first."""
        job_commits = [info for info in self.history() if info.job == job]
        not_undone = [info for info in job_commits if info.undone_by is None]
        oldest = self._clock() - self._limits.undo_seconds
        if not job_commits:
            raise RefusedError(f"Job {job} has no undoable changes. `echod log` lists the jobs that do.")
        if not not_undone:
            raise AlreadyUndoneError(f"Job {job} was undone already, by job {job_commits[0].undone_by}.")
        if any(info.at < oldest for info in not_undone):
            raise RefusedError(f"Job {job} is older than {self._limits.undo_days:g} days; it is too late to undo it.")
        return not_undone

    def _preview_commit(self, info: CommitInfo) -> UndoPreview:
        # See the module's docstring.
        with as_store_error("read", info.role.path), open_role_directory(info.role) as directory:
            return undo.preview_record(self._build_context(directory), self._find_record(info))

    def _find_record(self, info: CommitInfo) -> CommitRecord:
        return next(record for record in list_records(self._journal, info.role) if record.seq == info.seq)

    def _build_context(self, directory: RoleDirectory, lock: RoleLock | None = None) -> CommitContext:
        """Return a context. Without a lock nothing can be committed with it."""
        return CommitContext(
            directory,
            self._journal.role_journal(directory.role),
            self._limits,
            self._clock,
            self._trace,
            lock or RoleLock(directory.role, None, self._clock()),
            self._parse_cache,
            self._capabilities,
        )
