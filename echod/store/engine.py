"""The commit engine: the one way in which echod changes echo files. Everybody else plans; this room writes.

It keeps no opinion about memory beyond blocks and their conservation, knows neither jobs nor the database, and
must be used by one process at a time (the worker lock sees to it). docs/durability.md is its promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import structlog

from echod.store.absorb import due, settle
from echod.store.capabilities import Probes
from echod.store.closing import abandon
from echod.store.desk import Desk, Readings
from echod.store.faults import Busy, Refused, StoreFault, told
from echod.store.fsops import make_dir, open_dir
from echod.store.ground import DIR_MODE, Ground, stand_on
from echod.store.heal import healed_memory
from echod.store.history import Done, Rewrite, history, records_of, rewrites
from echod.store.journal import Journal
from echod.store.layout import Role, Store
from echod.store.limits import EngineLimits
from echod.store.plan import Gate, open_gate
from echod.store.purge import finish
from echod.store.records import RecordState
from echod.store.recover import Parked, Recovery, recover_role
from echod.store.retention import retain
from echod.store.reviews import Question, Review, asked, noted
from echod.store.rolelock import RoleLock, acquire, release, release_left_behind
from echod.store.session import RoleSession, RoleView, plain_memory
from echod.store.steps import Tracer, untraced
from echod.store.undo import Preview, Undone, preview_record, undo_record

log = structlog.get_logger(__name__)


class Engine:
    """All stores' commits, their journal and their recovery."""

    def __init__(
        self, journal: Path, *, limits: EngineLimits, clock: Callable[[], float], trace: Tracer = untraced
    ) -> None:
        self._journal = Journal(journal)
        self._limits = limits
        self._clock = clock
        self._trace = trace
        self._readings = Readings()
        self._probes = Probes()

    def recover(self, stores: Iterable[Store]) -> Recovery:
        """Finish what a crash left half done; at start, and whenever in doubt. Costs little when there is nothing."""
        total = Recovery()
        for store in stores:
            for role in self._roles(store):
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

    def peek(self, role: Role) -> RoleView:
        """What a role holds, for whoever only looks (report mode, dry runs): no lock, no healing, nothing written.

        Raises:
            Busy: the memory file is being written.
            StoreFault: the role cannot be read.
        """
        with self.only_look(role) as session:
            return session.read()

    @contextmanager
    def only_look(self, role: Role) -> Iterator[RoleSession]:
        """A session that takes no lock, repairs nothing and refuses every commit (report mode, dry runs).

        Raises:
            StoreFault: the role's directory cannot be opened.
        """
        with told("look into", role.path), stand_on(role) as ground:
            yield RoleSession(self._at(ground, RoleLock(role, None, self._clock())), plain_memory)

    def gave_back(self, role: Role) -> frozenset[str]:
        """Digests of findings files that undos gave back to a role, and that are not folded in again unasked."""
        with told("read the journal in", self._journal.root):
            return self._journal.of(role).undone()

    def owes(self, store: Store) -> bool:
        """Whether commits of a store are still followed, so that `settle_debts` may have something to do."""
        return any(self._journal.of(role).open_records() for role in self._roles(store))

    def settle_debts(self, store: Store) -> tuple[int, ...]:
        """Merge what came late into displaced and consumed files, and close what is over; at every reconcile.

        Writes nothing and takes no lock where there is nothing to do. A role that is busy waits for the next time.
        Returns the numbers of the commits that were made.
        """
        made: list[int] = []
        for role in self._roles(store):
            try:
                with told("follow late changes in", role.path):
                    made += self._settle(role)
            except (Busy, StoreFault) as error:
                log.info("late_bytes_wait", role=str(role.path), reason=str(error))
        return tuple(made)

    def history(self, stores: Iterable[Store] | None = None) -> tuple[Done, ...]:
        """Commits that are still known, newest first; of every store with a journal if none is named."""
        with told("read the journal in", self._journal.root):
            return history(self._journal, self._journal.stores() if stores is None else stores)

    def rewrites(self, role: Role) -> tuple[Rewrite, ...]:
        """The known commits of a role that wrote its memory file, oldest first, with the file before and after each.

        A commit whose contents the journal does not keep any more is left out.
        """
        with told("read the journal in", self._journal.root):
            return rewrites(self._journal, role, self._readings)

    def highest_job(self) -> int:
        """The highest job number the journal knows (a rebuilt database must count on from there); 0 for none."""
        return max((done.job for done in self.history() if done.job is not None), default=0)

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

    def preview_undo(self, job: int) -> tuple[Preview, ...]:
        """What `undo` would do now, newest commit first; for whoever only looks: no lock, nothing written.

        Raises:
            Busy, Refused, StoreFault: as `undo` would.
        """
        return tuple(self._preview(done) for done in self._standing(job))

    def _standing(self, job: int) -> list[Done]:
        """The commits of a job that can be taken back, newest first."""
        known = [done for done in self.history() if done.job == job]
        todo = [done for done in known if done.undone_by is None]
        oldest = self._clock() - self._limits.undo_days * 86_400
        if not known:
            raise Refused(f"Job {job} changed nothing that is still known; see `echod log`.")
        if not todo:
            raise Refused(f"Job {job} was undone already, by job {known[0].undone_by}.")
        if any(done.at < oldest for done in todo):
            raise Refused(f"Job {job} is older than {self._limits.undo_days:g} days; it is too late to undo it.")
        return todo

    def retain(self) -> int:
        """Forget what is beyond its time, in every journal; how many bytes that freed. Daily."""
        with told("tidy up the journal in", self._journal.root):
            finish(self._journal.root)
            return sum(
                retain(self._journal.of(role), self._limits, self._clock)
                for store in self._journal.stores()
                for role in self._roles(store)
            )

    def reviews(self, store: Store) -> tuple[Review, ...]:
        """What a person should look at in a store, oldest first."""
        roots = (self._journal.of(role).root for role in self._roles(store))
        return tuple(sorted((r for root in roots for r in noted(root)), key=lambda review: review.at))

    def questions(self, store: Store) -> tuple[Question, ...]:
        """What findings that were folded in ask a person for, oldest first."""
        found: list[Question] = []
        for journal in map(self._journal.of, self._roles(store)):
            if questions := asked(journal.root):
                consumed = journal.known_keys()
                found += [question for question in questions if question.key in consumed]
        return tuple(sorted(found, key=lambda question: question.at))

    def own_writes(self, store: Store) -> Mapping[Path, int]:
        """Files of a store and their mtime in nanoseconds as echod last left them; other mtimes are other people's."""
        return {
            store.root / path: mtime
            for role in self._roles(store)
            for path, mtime in self._journal.of(role).own_writes().items()
        }

    def _settle(self, role: Role) -> tuple[int, ...]:
        journal = self._journal.of(role)
        if not journal.open_records():
            return ()
        if not role.path.exists():
            abandon(journal, older_than=self._clock() - self._limits.displaced_hours * 3600)
            return ()
        with stand_on(role) as ground:
            unlocked = RoleLock(role, None, self._clock())
            if not due(self._at(ground, unlocked)):
                return ()
        with self._desk(role) as desk:
            recover_role(desk)
            healed_memory(desk)
            return settle(desk)

    def _roles(self, store: Store) -> tuple[Role, ...]:
        with told("read the journal in", self._journal.root):
            return self._journal.roles(store)

    def _undo(self, done: Done, by: int, gate: Gate) -> Undone:
        with told("undo a change in", done.role.path), self._desk(done.role) as desk:
            recover_role(desk)
            record = next(r for r in records_of(self._journal, done.role) if r.seq == done.seq)
            return undo_record(desk, record, job=by, gate=gate)

    def _preview(self, done: Done) -> Preview:
        with told("look into", done.role.path), stand_on(done.role) as ground:
            desk = self._at(ground, RoleLock(done.role, None, self._clock()))
            record = next(r for r in records_of(self._journal, done.role) if r.seq == done.seq)
            return preview_record(desk, record)

    def _recover(self, role: Role) -> Recovery:
        journal = self._journal.of(role)
        try:
            with told("recover", role.path):
                release_left_behind(role, journal)
                if not any(r.state is RecordState.INTENT for r in journal.open_records()):
                    return Recovery()
                with self._desk(role) as desk:
                    return recover_role(desk)
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

    def _at(self, ground: Ground, lock: RoleLock) -> Desk:
        journal = self._journal.of(ground.role)
        return Desk(ground, journal, self._limits, self._clock, self._trace, lock, self._readings, self._probes)


def _sum(one: Recovery, other: Recovery) -> Recovery:
    return Recovery(one.redone + other.redone, one.swept + other.swept, one.parked + other.parked)
