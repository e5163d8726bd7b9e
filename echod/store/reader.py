"""What stores and their journal say, for whoever only looks: takes no lock, repairs nothing, writes nothing.

What is asked of a hundred projects at once loads nothing that takes a memory apart or commits.

What was done: commits for `echod log` and for choosing what to undo. Reads the journal, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from echod.log import get_logger
from echod.memory.model import Document
from echod.store.commit.context import ParseCache
from echod.store.commit.steps import Tracer, no_trace
from echod.store.errors import RefusedError, StoreError, as_store_error
from echod.store.journal.journal import Journal
from echod.store.journal.notices import NOTICES, QUESTIONS, Notice, Notices, Question, read_notices, read_questions
from echod.store.journal.records import CommitRecord, RecordState
from echod.store.layout import MEMORY, Role, Store, store_at
from echod.store.limits import EngineLimits

if TYPE_CHECKING:
    from echod.store.capabilities import CapabilityCache
    from echod.store.commit.context import CommitContext, ParseCache
    from echod.store.journal.records import CommitRecord
    from echod.store.role_directory import RoleDirectory
    from echod.store.role_lock import RoleLock
    from echod.store.session import RoleSession, RoleView
    from echod.store.undo import UndoPreview


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """One commit.

    Attributes:
        job: the job it was made for; None for healing and late bytes.
        at: Unix seconds.
        undone_by: the job that took it back, None where it stands.
    """

    store: Store
    role: Role
    seq: int
    job: int | None
    kind: str
    summary: str
    at: float
    undone_by: int | None


class MemoryCommit(NamedTuple):
    """One commit that wrote the memory file, and the file before and after it."""

    info: CommitInfo
    before: Document
    after: Document


def list_commits(journal: Journal, stores: Iterable[Store]) -> tuple[CommitInfo, ...]:
    """Every commit that is still known, newest first."""
    found = [done for store in stores for role in journal.roles(store) for done in _role_commits(journal, role)]
    return tuple(sorted(found, key=lambda done: (done.at, done.seq), reverse=True))


def list_records(journal: Journal, role: Role) -> tuple[CommitRecord, ...]:
    """A role's commits, oldest first."""
    role_journal = journal.role_journal(role)
    # In this order, since another process may close a record between the two looks.
    open_records = role_journal.open_records()
    by_seq = {record.seq: record for record in (*open_records, *role_journal.closed_records())}
    return tuple(by_seq[seq] for seq in sorted(by_seq))


def list_memory_commits(journal: Journal, role: Role, cache: ParseCache) -> tuple[MemoryCommit, ...]:
    """The commits of a role that wrote its memory file, oldest first; without those whose contents are gone."""
    infos = {commit.seq: commit for commit in _role_commits(journal, role)}
    role_journal, path = journal.role_journal(role), str(PurePosixPath(role.name, MEMORY))
    found = []
    for record in list_records(journal, role):
        for write in record.writes:
            if write.path != path or record.state is RecordState.INTENT:
                continue
            before = (
                Document("", ()) if write.before_digest is None else cache.parse_blob(role_journal, write.before_digest)
            )
            after = cache.parse_blob(role_journal, write.after_digest)
            if before is not None and after is not None:
                found.append(MemoryCommit(infos[record.seq], before, after))
    return tuple(found)


def _role_commits(journal: Journal, role: Role) -> list[CommitInfo]:
    records = list_records(journal, role)
    undone = {seq: record.job for record in records for seq in record.undoes}
    return [CommitInfo(role.store, role, r.seq, r.job, r.kind, r.summary, r.at, undone.get(r.seq)) for r in records]


log = get_logger(__name__)


class StoreReader:
    """All stores and their journal, without a way to change them."""

    def __init__(
        self, journal: Path, *, limits: EngineLimits, clock: Callable[[], float], trace: Tracer = no_trace
    ) -> None:
        self._journal = Journal(journal)
        self._limits = limits
        self._clock = clock
        self._trace = trace

    def read_role(self, role: Role) -> RoleView:
        """What a role holds, for whoever only looks (report mode, dry runs): no lock, no healing, nothing written.

        Raises:
            BusyError: the memory file is being written.
            StoreError: the role cannot be read.
        """
        with self.open_read_only(role) as session:
            return session.read()

    @contextmanager
    def open_read_only(self, role: Role) -> Iterator[RoleSession]:
        """A session that takes no lock, repairs nothing and refuses every commit (report mode, dry runs).

        Raises:
            StoreError: the role's directory cannot be opened.
        """
        from echod.store.role_directory import open_role_directory  # noqa: PLC0415  slow to load, as is what follows
        from echod.store.session import RoleSession, read_raw_memory  # noqa: PLC0415

        with as_store_error("look into", role.path), open_role_directory(role) as directory:
            yield RoleSession(self._read_only_context(directory), read_raw_memory)

    def has_open_commits(self, store: Store) -> bool:
        """Whether commits of a store are still followed, so that `merge_late_writes` may have something to do.

        Raises:
            StoreError: a role's journal cannot tell.
        """
        with as_store_error("read the journal in", self._journal.root):
            return any(self._journal.role_journal(role).open_records() for role in self._journal.roles(store))

    def history(self, stores: Iterable[Store] | None = None) -> tuple[CommitInfo, ...]:
        """Commits that are still known, newest first; of every store with a journal if none is named."""
        with as_store_error("read the journal in", self._journal.root):
            return list_commits(self._journal, self._journal.stores() if stores is None else stores)

    def memory_commits(self, role: Role) -> tuple[MemoryCommit, ...]:
        """The known commits of a role that wrote its memory file, oldest first, with the file before and after each.

        A commit whose contents the journal does not keep any more is left out.
        """
        with as_store_error("read the journal in", self._journal.root):
            return list_memory_commits(self._journal, role, self._parse_cache)

    def highest_job(self) -> int:
        """The highest job number the journal knows (a rebuilt database must count on from there); 0 for none."""
        return max((done.job for done in self.history() if done.job is not None), default=0)

    def preview_undo(self, job: int) -> tuple[UndoPreview, ...]:
        """What `undo` would do now, newest commit first; for whoever only looks: no lock, nothing written.

        Raises:
            BusyError, RefusedError, StoreError: as `undo` would.
        """
        return tuple(self._preview_commit(done) for done in self._undoable_commits(job))

    def _undoable_commits(self, job: int) -> list[CommitInfo]:
        """The commits of a job that can be taken back, newest first."""
        job_commits = [done for done in self.history() if done.job == job]
        not_undone = [done for done in job_commits if done.undone_by is None]
        oldest = self._clock() - self._limits.undo_days * 86_400
        if not job_commits:
            raise RefusedError(f"Job {job} changed nothing that is still known; see `echod log`.")
        if not not_undone:
            raise RefusedError(f"Job {job} was undone already, by job {job_commits[0].undone_by}.")
        if any(done.at < oldest for done in not_undone):
            raise RefusedError(f"Job {job} is older than {self._limits.undo_days:g} days; it is too late to undo it.")
        return not_undone

    def collect_notices(self, store: Store) -> Notices:
        """What the journal has for a person to look at in a store.

        What a role's journal cannot tell is left out: no job is done there either, and that is told by the jobs.

        Raises:
            StoreError: the journal cannot be looked into.
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
                    if files - {NOTICES, QUESTIONS} and (undone := journal.undo_index.restored_findings()):
                        restored_findings[role] = undone
                    if QUESTIONS in files and (questions_here := read_questions(journal.root)):
                        consumed_keys = journal.consumed_keys()
                        questions += [question for question in questions_here if question.key in consumed_keys]
            except StoreError as error:
                log.info("role_unreadable", role=str(role.path), reason=str(error))
        return Notices(
            tuple(sorted(notices, key=lambda review: review.at)),
            tuple(sorted(questions, key=lambda question: question.at)),
            restored_findings,
        )

    def own_mtime(self, file: Path) -> int | None:
        """The mtime (nanoseconds) of a memory or knowledge file as echod last left it; None where it never did."""
        role = Role(store_at(file.parent.parent), file.parent.name)
        return self._journal.role_journal(role).own_mtimes().get(str(file.relative_to(role.store.root)))

    def own_mtimes(self, store: Store) -> Mapping[Path, int]:
        """Files of a store and their mtime in nanoseconds as echod last left them; other mtimes are other people's."""
        return {
            store.root / path: mtime
            for role in self.journaled_roles(store)
            for path, mtime in self._journal.role_journal(role).own_mtimes().items()
        }

    def journaled_roles(self, store: Store) -> tuple[Role, ...]:
        """The roles of a store in which something was committed, whether or not they are still there."""
        with as_store_error("read the journal in", self._journal.root):
            return self._journal.roles(store)

    def _preview_commit(self, info: CommitInfo) -> UndoPreview:
        from echod.store.role_directory import open_role_directory  # noqa: PLC0415
        from echod.store.undo import preview_record  # noqa: PLC0415

        with as_store_error("look into", info.role.path), open_role_directory(info.role) as directory:
            return preview_record(self._read_only_context(directory), self._find_record(info))

    def _find_record(self, info: CommitInfo) -> CommitRecord:

        return next(record for record in list_records(self._journal, info.role) if record.seq == info.seq)

    def _read_only_context(self, directory: RoleDirectory) -> CommitContext:
        """What a look works with; nothing can be committed with it."""
        from echod.store.role_lock import RoleLock  # noqa: PLC0415

        return self._build_context(directory, RoleLock(directory.role, None, self._clock()))

    def _build_context(self, directory: RoleDirectory, lock: RoleLock) -> CommitContext:
        from echod.store.commit.context import CommitContext  # noqa: PLC0415

        journal = self._journal.role_journal(directory.role)
        return CommitContext(
            directory, journal, self._limits, self._clock, self._trace, lock, self._parse_cache, self._capabilities
        )

    @cached_property
    def _parse_cache(self) -> ParseCache:
        from echod.store.commit.context import ParseCache  # noqa: PLC0415

        return ParseCache()

    @cached_property
    def _capabilities(self) -> CapabilityCache:
        from echod.store.capabilities import CapabilityCache  # noqa: PLC0415

        return CapabilityCache()
