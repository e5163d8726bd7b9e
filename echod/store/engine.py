"""The commit engine: the only way in which echod changes echo files.

All other code plans, and this package writes. It knows nothing of memory beyond blocks and their conservation, and
neither jobs nor the database. Only one process may use it at a time (the worker lock ensures it). docs/durability.md
describes its promises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from echod.isolation import error_reason, isolated
from echod.log import get_logger
from echod.store.changes import CommitGate, no_gate
from echod.store.commit.context import CommitContext
from echod.store.create import create_role_directory
from echod.store.errors import BusyError, StoreError, as_store_error
from echod.store.fs import open_dir
from echod.store.healing.heal import read_healed_memory
from echod.store.healing.late_writes import close_orphaned, merge_late_writes, needs_late_merge
from echod.store.healing.recovery import DeferredRecovery, RecoveryReport, recover_role
from echod.store.journal.records import RecordState
from echod.store.journal.retention import apply_retention, finish_deletions
from echod.store.layout import Role, Store, global_root, list_roles, solutions_store
from echod.store.private_directory import remove_if_unused
from echod.store.reader import CommitInfo, StoreReader
from echod.store.role_directory import open_role_directory
from echod.store.role_lock import acquire_role_lock, release_own_stale_lock, release_role_lock
from echod.store.session import RoleSession
from echod.store.undo import UndoResult, undo_record

log = get_logger(__name__)


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
