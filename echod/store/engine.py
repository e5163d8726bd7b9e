"""The commit engine: the one way in which echod changes echo files. Everybody else plans; this room writes.

It keeps no opinion about memory beyond blocks and their conservation, knows neither jobs nor the database, and
must be used by one process at a time (the worker lock sees to it). docs/durability.md is its promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from echod.log import get_logger
from echod.store.changes import Gate, open_gate
from echod.store.commit.context import Desk
from echod.store.commit.recover import Parked, Recovery, recover_role
from echod.store.errors import Busy, StoreFault, told
from echod.store.fs import make_dir, open_dir
from echod.store.healing.heal import healed_memory
from echod.store.healing.late_writes import abandon, due, settle
from echod.store.journal.records import RecordState
from echod.store.journal.retention import finish, retain
from echod.store.layout import Role, Store
from echod.store.reader import Done, Reader
from echod.store.role_directory import DIR_MODE, Ground, stand_on
from echod.store.role_lock import acquire, release, release_left_behind
from echod.store.session import RoleSession
from echod.store.undo import Undone, undo_record

log = get_logger(__name__)


class Engine(Reader):
    """All stores' commits, their journal and their recovery."""

    def recover(self, stores: Iterable[Store]) -> Recovery:
        """Finish what a crash left half done; at start, and whenever in doubt. Costs little when there is nothing."""
        total = Recovery()
        for store in stores:
            for role in self.roles(store):
                total = _sum(total, self._recover(role))
        return total

    def create_role(self, role: Role) -> None:
        """Make a role's directory if there is none yet (`remember` and observations start roles).

        Raises:
            StoreFault: something else stands in its place, or it cannot be made.
        """
        below = role.store.root.relative_to(role.store.project).parts
        with told("create the role", role.path), open_dir(role.store.project, below) as store:
            make_dir(store, role.name, DIR_MODE)
            store.below(role.name).close()

    @contextmanager
    def open_role(self, role: Role) -> Iterator[RoleSession]:
        """Hold a role for one job; whatever a crash left there is finished first.

        Raises:
            Busy: another writer holds it; the job is deferred.
            StoreFault: its directory cannot be opened, or its recovery failed.
        """
        with told("work in", role.path), self._desk(role) as desk:
            recover_role(desk)
            yield RoleSession(desk)

    def settle_debts(self, store: Store) -> tuple[int, ...]:
        """Merge what came late into displaced and consumed files, and close what is over; at every reconcile.

        Writes nothing and takes no lock where there is nothing to do. A role that is busy waits for the next time.
        Returns the numbers of the commits that were made.
        """
        made: list[int] = []
        for role in self.roles(store):
            try:
                with told("follow late changes in", role.path):
                    made += self._settle(role)
            except (Busy, StoreFault) as error:
                log.info("late_bytes_wait", role=str(role.path), reason=str(error))
        return tuple(made)

    def undo(self, job: int, *, by: int, gate: Gate = open_gate) -> tuple[Undone, ...]:
        """Take back everything a job did, newest commit first.

        Args:
            job: the job to take back.
            by: the number of the job that does it.
            gate: asked just before each point of no return.

        Raises:
            Refused: there is no such job any more, it is too old, or it was taken back already.
            Busy: not now; what was taken back so far stays taken back, and asking again goes on with the rest.
            StoreFault: the file system failed.
        """
        return tuple(self._undo(done, by, gate) for done in self._standing(job))

    def retain(self) -> int:
        """Forget what is beyond its time, in every journal that can be read; how many bytes that freed. Daily."""
        with told("tidy up the journal in", self._journal.root):
            finish(self._journal.root)
            roles = [role for store in self._journal.stores() for role in self._journal.roles(store)]
        return sum(map(self._retain, roles))

    def _retain(self, role: Role) -> int:
        journal = self._journal.of(role)
        try:
            with told("tidy up the journal in", journal.root):
                return retain(journal, self._limits, self._clock)
        except StoreFault as error:
            log.warning("journal_not_tidied", role=str(role.path), reason=str(error))
            return 0

    def _settle(self, role: Role) -> tuple[int, ...]:
        journal = self._journal.of(role)
        if not journal.open_records():
            return ()
        if not role.path.exists():
            abandon(journal, older_than=self._clock() - self._limits.displaced_hours * 3600)
            return ()
        with stand_on(role) as ground:
            if not due(self._unlocked(ground)):
                return ()
        with self._desk(role) as desk:
            recover_role(desk)
            healed_memory(desk)
            return settle(desk)

    def _undo(self, done: Done, by: int, gate: Gate) -> Undone:
        with told("undo a change in", done.role.path), self._desk(done.role) as desk:
            recover_role(desk)
            return undo_record(desk, self._record(done), job=by, gate=gate)

    def _recover(self, role: Role) -> Recovery:
        journal = self._journal.of(role)
        try:
            with told("recover", role.path):
                release_left_behind(role, journal)
                recovered = Recovery()
                if any(r.state is RecordState.INTENT for r in journal.open_records()):
                    with self._desk(role) as desk:
                        recovered = recover_role(desk)
                journal.undoings.list_all()
                return recovered
        except (Busy, StoreFault) as error:
            log.warning("recovery_parked", role=str(role.path), reason=str(error))
            return Recovery(parked=(Parked(f"{role.store.key}/{role.name}", str(error)),))

    @contextmanager
    def _desk(self, role: Role) -> Iterator[Desk]:
        with stand_on(role) as ground, self._locked(role, ground) as desk:
            yield desk

    @contextmanager
    def _locked(self, role: Role, ground: Ground) -> Iterator[Desk]:
        journal = self._journal.prepare(role)
        release_left_behind(role, journal)
        lock = acquire(role, journal, now=self._clock())
        try:
            with journal.alone():
                yield self._at(ground, lock)
        finally:
            release(lock, journal)


def _sum(one: Recovery, other: Recovery) -> Recovery:
    return Recovery(one.redone + other.redone, one.swept + other.swept, one.parked + other.parked)
