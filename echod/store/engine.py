"""The commit engine: the only way in which echod changes echo files.

All other code plans, and this package writes. It knows nothing of memory beyond blocks and their conservation, and
neither jobs nor the database. Only one process may use it at a time (the worker lock ensures it). docs/durability.md
describes its promises.

A session on a role is for one job: it reads, plans and commits. The upstream writers' lock is held meanwhile. The job
plans from the result of `read` and names those contents in its change set. The commit detects when another program was
faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from echod.errors import error_reason, isolated
from echod.files import content_digest
from echod.log import get_logger
from echod.memory import MAX_FILE_BYTES
from echod.store.changes import (
    ChangeSet,
    CommitConflict,
    CommitGate,
    CommitPlan,
    CommitResult,
    Origin,
    PlannedConsume,
    PlannedWrite,
    no_gate,
)
from echod.store.commit.commit import check_conservation, commit
from echod.store.commit.context import CommitContext
from echod.store.create import create_role_directory
from echod.store.errors import BusyError, RefusedError, StoreError, as_store_error
from echod.store.fs import TRANSIENT_ERRNOS, FileUnavailableError, Snapshot, UnavailableFile, open_dir, too_large_file
from echod.store.healing.heal import git_head, read_healed_memory, record_deletion
from echod.store.healing.late_writes import close_orphaned, merge_late_writes, merge_late_writes_of, needs_late_merge
from echod.store.healing.recovery import DeferredRecovery, RecoveryReport, recover_role
from echod.store.journal.ledger import Question, add_questions
from echod.store.journal.records import RecordState
from echod.store.journal.retention import apply_retention, finish_deletions
from echod.store.layout import KNOWLEDGE, Role, Store, global_root, iter_findings_files, list_roles, solutions_store
from echod.store.private_directory import remove_if_unused
from echod.store.reader import CommitInfo, StoreReader
from echod.store.role import acquire_role_lock, open_role_directory, release_own_stale_lock, release_role_lock
from echod.store.undo import UndoResult, undo_record

log = get_logger(__name__)

_MAX_FINDINGS, _MAX_FINDINGS_BYTES = 600, 1 << 20
"""How many of a role's findings are read at once: more than a job consolidates, but independent of the role's size."""


@dataclass(frozen=True, slots=True)
class RoleView:
    """The content of a role, every file as of one moment."""

    role: Role
    memory: Snapshot  # `data` is None if there is no memory file yet
    # the knowledge file; None if it cannot be read now, with the reason in `knowledge_problem`
    knowledge: Snapshot | None
    knowledge_problem: UnavailableFile | None
    # findings files that can be read now, in name order; only some of them if they are very many
    findings: tuple[Snapshot, ...]
    # findings files that cannot be read now, each with the reason; left for the next time
    unavailable_findings: tuple[UnavailableFile, ...]
    consumed_keys: AbstractSet[str]  # the ledger: findings that were consumed before
    # digests of findings files whose consolidation was undone; not repeated automatically
    restored_findings: frozenset[str]
    partially_consumed: frozenset[str]  # digests of findings files that were consumed in part


def read_role_view(context: CommitContext, memory: Snapshot, min_age_seconds: float) -> RoleView:
    """Read the other files of a role beside its memory file. Read-only."""
    unavailable: list[UnavailableFile] = []
    consumed_keys, restored = context.journal.consumed_keys(), context.journal.undo_index.restored_findings()
    findings: list[Snapshot] = []
    count = size = 0
    with as_store_error("list", context.role.path):
        for snapshot in _iter_findings(context, min_age_seconds, unavailable):
            findings.append(snapshot)
            if snapshot.digest in restored:
                continue  # these remain, so they must not hide other files
            count, size = count + 1, size + len(snapshot.text)
            if count >= _MAX_FINDINGS or size >= _MAX_FINDINGS_BYTES:
                break
    findings.sort(key=lambda snapshot: snapshot.path.name)
    knowledge_problems: list[UnavailableFile] = []
    knowledge = _read_if_available(context, KNOWLEDGE, knowledge_problems)
    return RoleView(
        context.role,
        memory,
        knowledge,
        knowledge_problems[0] if knowledge_problems else None,
        tuple(findings),
        tuple(unavailable),
        consumed_keys,
        restored,
        context.journal.partially_consumed(),
    )


def _iter_findings(context: CommitContext, min_age: float, unavailable: list[UnavailableFile]) -> Iterator[Snapshot]:
    for name in iter_findings_files(context.role):
        status, path, now = context.directory.root.stat(name), context.role.path / name, context.clock()
        if status is None:
            continue
        if status.st_size > MAX_FILE_BYTES:
            unavailable.append(too_large_file(path))
        elif 0 <= now - status.st_mtime < min_age:
            unavailable.append(UnavailableFile(path, f"{name} is still being written.", status.st_mtime + min_age))
        elif (snapshot := _read_if_available(context, name, unavailable)) is not None and snapshot.data is not None:
            yield snapshot


def _read_if_available(context: CommitContext, name: str, unavailable: list[UnavailableFile]) -> Snapshot | None:
    path = context.role.path / name
    try:
        return context.read(context.directory.path_of(name))
    except FileUnavailableError as error:
        unavailable.append(error.file)
    except StoreError as error:
        permanent = isinstance(error.__cause__, OSError) and error.__cause__.errno not in TRANSIENT_ERRNOS
        unavailable.append(UnavailableFile(path, str(error), permanent=permanent))
    return None


def read_raw_memory(context: CommitContext) -> Snapshot:
    """Read the memory file as it is on disk, for read-only callers. Nothing is repaired or recorded."""
    return context.read(context.memory_path)


@dataclass(slots=True)
class RoleSession:
    """A role opened by `Engine.open_role`, or read-only by `StoreReader.open_read_only`."""

    context: CommitContext
    read_memory: Callable[[CommitContext], Snapshot] = read_healed_memory
    _contents: dict[str, bytes] = field(default_factory=dict)
    _conflicts: int = 0

    @property
    def role(self) -> Role:
        """The role that is held."""
        return self.context.role

    def read(self, *, min_age_seconds: float = 0.0) -> RoleView:
        """Read the role. Findings files that were changed less than `min_age_seconds` ago count as busy.

        `BusyError` if the memory file is being written. The job waits.
        """
        view = read_role_view(self.context, self.read_memory(self.context), min_age_seconds)
        for snapshot in (view.memory, *view.findings, *filter(None, [view.knowledge])):
            self._cache_content(snapshot)
        return view

    def read_file(self, name: str) -> Snapshot:
        """Read one more file of the role, named relative to it (`archive/pruned-2026.md`)."""
        snapshot = self.context.read(self.context.directory.path_of(name))
        self._cache_content(snapshot)
        return snapshot

    def record_questions(self, questions: Iterable[Question]) -> None:
        """Record the user's decisions that findings need. Call this before the commit that consumes the findings."""
        with as_store_error("write the journal of", self.role.path):
            add_questions(self.context.journal.root, questions)

    def commit(self, job: int, changes: ChangeSet, *, gate: CommitGate = no_gate) -> CommitResult | CommitConflict:
        """Carry out a job's change set, or report that the plan is out of date.

        The changes are planned from contents that this session read. `gate` is called just before the point of no
        return. After `max_replans` overtaken plans the commit continues, and writes of other programs are merged.

        Raises:
            BusyError: not now. Nothing was changed.
            RefusedError: the change set breaks a promise. The message names the block.
            StoreError: the file system failed. Nothing was changed, or recovery will finish it.
        """
        if self.read_memory is not read_healed_memory:
            raise RefusedError("This session is read-only. Nothing was changed.")
        plan = self._build_plan(job, changes)
        if isinstance(plan, CommitConflict):
            return self._count_conflicts(plan)
        if plan.is_empty:
            return CommitResult(None)
        check_conservation(plan, self.context.cache.parse, by_user=changes.origin is Origin.USER)
        paths: frozenset[str] = frozenset()
        if self._conflicts >= self.context.limits.max_replans:
            paths = frozenset(w.path for w in plan.writes) | {c.path for c in plan.consumes}
        outcome = commit(self.context, plan, gate=gate, head=git_head(self.context), forced_paths=paths)
        if isinstance(outcome, CommitResult):
            record_deletion(self.context, plan)
            self._merge_late_writes(outcome)
        return self._count_conflicts(outcome)

    def _merge_late_writes(self, result: CommitResult) -> None:
        """Merge changes of the displaced files since they were read, as far as possible now. The rest waits."""
        try:
            with as_store_error("follow late changes in", self.role.path):
                merge_late_writes_of(self.context, result.seq)
        except (BusyError, StoreError) as error:
            log.info("late_writes_deferred", role=str(self.role.path), seq=result.seq, reason=str(error))

    def _cache_content(self, snapshot: Snapshot) -> None:
        if snapshot.data is not None:
            self._contents[content_digest(snapshot.data)] = snapshot.data

    def _count_conflicts(self, outcome: CommitResult | CommitConflict) -> CommitResult | CommitConflict:
        self._conflicts = self._conflicts + 1 if isinstance(outcome, CommitConflict) else 0
        return outcome

    def _build_plan(self, job: int, changes: ChangeSet) -> CommitPlan | CommitConflict:
        """Resolve digests to contents, choose free archive names, and drop writes that change nothing."""
        if changes.role != self.role.name:
            raise RefusedError(f"A change for the role {changes.role!r} was planned in {self.role.name!r}.")
        writes = []
        for write in changes.writes:
            before = None if write.before is None else self._find_content(str(write.path), write.before)
            if isinstance(before, CommitConflict):
                return before
            if before != write.after:
                writes.append(PlannedWrite(str(write.path), before, write.after))
        consumes = []
        used_paths: set[str] = set()
        for consume in changes.consumes:
            path = str(consume.path)
            content = self._find_content(path, consume.before)
            if isinstance(content, CommitConflict):
                return content
            archive = self._free_archive_path(consume.archive, used_paths)
            consumes.append(PlannedConsume(path, content, consume.archived_text, archive, consume.keys))
        appends = tuple((str(a.path), a.text) for a in changes.appends if a.text)
        kind, summary, partial = changes.kind, changes.summary, changes.partial_consumes
        return CommitPlan(job, kind, summary, tuple(writes), appends, tuple(consumes), partial)

    def _find_content(self, path: str, expected_digest: str) -> bytes | CommitConflict:
        """Return the content with that digest from this session's reads, else from the disk."""
        if expected_digest in self._contents:
            return self._contents[expected_digest]
        current = self.context.read(path)
        if current.data is None or current.digest != expected_digest:
            return CommitConflict(path)
        return current.data

    def _free_archive_path(self, preferred: PurePosixPath, used_paths: set[str]) -> str:
        with as_store_error("open the directory of", self.context.role.store.root / preferred):
            directory, _ = self.context.directory.resolve(preferred)
        number, name = 1, preferred
        while str(name) in used_paths or directory.stat(name.name) is not None:
            number += 1
            name = preferred.with_name(f"{preferred.stem}-{number}{preferred.suffix}")
        used_paths.add(str(name))
        return str(name)


class Engine(StoreReader):
    """The commits of all stores, their journal and their recovery."""

    def recover(self, stores: Iterable[Store]) -> RecoveryReport:
        """Finish everything that a crash left half done. Call this at start and whenever in doubt: it is cheap."""
        total = RecoveryReport()
        for store in _with_solutions(stores):
            with isolated(store.key):
                for role in self.journaled_roles(store):
                    total = _combine(total, self._recover_role(role))
        return total

    def create_role(self, role: Role) -> None:
        """Create a role's directory if it does not exist."""
        create_role_directory(role)

    @contextmanager
    def open_role(self, role: Role) -> Iterator[RoleSession]:
        """Hold a role for one job. Commits that a crash interrupted are finished first.

        Raises:
            BusyError: another writer holds it. The job is deferred.
            StoreError: its directory cannot be opened, or its recovery failed.
        """
        with as_store_error("work in", role.path), self._open_context(role) as context:
            recover_role(context)
            yield RoleSession(context)

    def merge_late_writes(self, store: Store) -> tuple[int, ...]:
        """Merge late writes to displaced and consumed files, restore overwritten entries, and close finished commits.

        Called at every reconcile, and when a store changed.

        Writes nothing and takes no lock if there is nothing to do. A busy role waits for the next time. Returns the
        numbers of the new commits.
        """
        seqs: list[int] = []
        for role in (role for one in _with_solutions([store]) for role in self.journaled_roles(one)):
            with isolated(str(role.path)):
                try:
                    with as_store_error("follow late changes in", role.path):
                        seqs += self._merge_role_late_writes(role)
                except (BusyError, StoreError) as error:
                    log.info("late_writes_deferred", role=str(role.path), reason=str(error))
        return tuple(seqs)

    def undo(self, job: int, *, by_job: int, gate: CommitGate = no_gate) -> tuple[UndoResult, ...]:
        """Undo all commits of a job, newest first. `gate` is called just before each point of no return.

        Raises:
            RefusedError: the job is unknown, too old, or already undone.
            BusyError: not now. Commits undone so far remain undone, and a second call continues with the others.
            StoreError: the file system failed.
        """
        return tuple(self._undo_commit(info, by_job, gate) for info in self._undoable_commits(job))

    def remove_private_directories(self, store: Store) -> None:
        """Remove the private directories of a store that contain no file any more."""
        with as_store_error("clean up in", store.root):
            stores = [one for one in _with_solutions([store]) if one == store or one.root.is_dir()]
            directories = (
                path for one in stores for path in (one.root, *(role.path for role in list_roles(one).roles))
            )
            for directory in directories:
                with open_dir(store.project, directory.relative_to(store.project).parts) as parent:
                    remove_if_unused(parent)

    def apply_retention(self) -> int:
        """Delete expired data from every journal that can be read, and return the freed bytes. Called daily."""
        with as_store_error("clean up the journal in", self._journal.root):
            finish_deletions(self._journal.root)
            roles = [role for store in self._journal.stores() for role in self._journal.roles(store)]
        freed = 0
        for role in roles:
            with isolated(str(role.path)):
                freed += self._apply_role_retention(role)
        return freed

    def _recover_role(self, role: Role) -> RecoveryReport:
        journal = self._journal.role_journal(role)
        try:
            with as_store_error("recover", role.path):
                release_own_stale_lock(role, journal)
                report = RecoveryReport()
                if any(r.state is RecordState.INTENT for r in journal.open_records()):
                    with self._open_context(role) as context:
                        report = recover_role(context)
                journal.undo_index.build()
                return report
        except (BusyError, StoreError) as error:
            log.warning("recovery_deferred", role=str(role.path), reason=str(error))
            return RecoveryReport(deferred=(DeferredRecovery(f"{role.store.key}/{role.name}", str(error)),))
        except Exception as error:
            log.exception("recovery_deferred", role=str(role.path))
            reason = f"Its recovery failed: {error_reason(error)}."
            return RecoveryReport(deferred=(DeferredRecovery(f"{role.store.key}/{role.name}", reason),))

    def _merge_role_late_writes(self, role: Role) -> tuple[int, ...]:
        journal = self._journal.role_journal(role)
        if not journal.open_records():
            self._heal_role(role)
            return ()
        if not role.path.exists():
            now = self._clock()
            close_orphaned(journal, now=now, older_than=now - self._limits.displaced_seconds)
            return ()
        with open_role_directory(role) as directory:
            if not needs_late_merge(self._build_context(directory)):
                return ()
        with self._open_context(role) as context:
            recover_role(context)
            read_healed_memory(context)
            return merge_late_writes(context)

    def _heal_role(self, role: Role) -> None:
        """Look at a memory file that another program wrote, and restore what it overwrote."""
        if self._is_changed_by_others(role):
            with self._open_context(role) as context:
                read_healed_memory(context)

    def _undo_commit(self, info: CommitInfo, by_job: int, gate: CommitGate) -> UndoResult:
        with as_store_error("undo a change in", info.role.path), self._open_context(info.role) as context:
            recover_role(context)
            return undo_record(context, self._find_record(info), job=by_job, gate=gate)

    def _apply_role_retention(self, role: Role) -> int:
        journal = self._journal.role_journal(role)
        try:
            with as_store_error("clean up the journal in", journal.root):
                return apply_retention(journal, self._limits, self._clock)
        except StoreError as error:
            log.warning("journal_retention_failed", role=str(role.path), reason=str(error))
            return 0

    @contextmanager
    def _open_context(self, role: Role) -> Iterator[CommitContext]:
        with open_role_directory(role) as directory:
            journal = self._journal.create_role_journal(role)
            release_own_stale_lock(role, journal)
            lock = acquire_role_lock(role, journal, now=self._clock())
            try:
                with journal.exclusive():
                    yield self._build_context(directory, lock)
            finally:
                release_role_lock(lock, journal)


def _with_solutions(stores: Iterable[Store]) -> tuple[Store, ...]:
    """Return the stores and the stores of the solutions of their projects, each once."""
    given = tuple(stores)
    projects = (store.project for store in given if global_root(store) is None)
    return tuple(dict.fromkeys((*given, *map(solutions_store, projects))))


def _combine(first: RecoveryReport, second: RecoveryReport) -> RecoveryReport:
    return RecoveryReport(
        first.redone + second.redone, first.swept_files + second.swept_files, first.deferred + second.deferred
    )
