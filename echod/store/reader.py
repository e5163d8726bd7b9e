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
from echod.store.commit.context import Readings
from echod.store.commit.steps import Tracer, untraced
from echod.store.errors import Refused, StoreFault, told
from echod.store.journal.journal import Journal
from echod.store.journal.notices import QUESTIONS, REVIEWS, Notes, Question, Review, asked, noted
from echod.store.journal.records import Record, RecordState
from echod.store.layout import MEMORY, Role, Store, store_at
from echod.store.limits import EngineLimits

if TYPE_CHECKING:
    from echod.store.capabilities import Probes
    from echod.store.commit.context import Desk, Readings
    from echod.store.journal.records import Record
    from echod.store.role_directory import Ground
    from echod.store.role_lock import RoleLock
    from echod.store.session import RoleSession, RoleView
    from echod.store.undo import Preview


@dataclass(frozen=True, slots=True)
class Done:
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


class Rewrite(NamedTuple):
    """One commit that wrote the memory file, and the file before and after it."""

    done: Done
    before: Document
    after: Document


def history(journal: Journal, stores: Iterable[Store]) -> tuple[Done, ...]:
    """Every commit that is still known, newest first."""
    found = [done for store in stores for role in journal.roles(store) for done in _of_role(journal, role)]
    return tuple(sorted(found, key=lambda done: (done.at, done.seq), reverse=True))


def records_of(journal: Journal, role: Role) -> tuple[Record, ...]:
    """A role's commits, oldest first."""
    own = journal.of(role)
    # In this order, since another process may close a record between the two looks.
    open_records = own.open_records()
    known = {record.seq: record for record in (*open_records, *own.closed_records())}
    return tuple(known[seq] for seq in sorted(known))


def rewrites(journal: Journal, role: Role, readings: Readings) -> tuple[Rewrite, ...]:
    """The commits of a role that wrote its memory file, oldest first; without those whose contents are gone."""
    done = {commit.seq: commit for commit in _of_role(journal, role)}
    own, path = journal.of(role), str(PurePosixPath(role.name, MEMORY))
    found = []
    for record in records_of(journal, role):
        for write in record.writes:
            if write.path != path or record.state is RecordState.INTENT:
                continue
            before = Document("", ()) if write.pre is None else readings.document(own, write.pre)
            after = readings.document(own, write.post)
            if before is not None and after is not None:
                found.append(Rewrite(done[record.seq], before, after))
    return tuple(found)


def _of_role(journal: Journal, role: Role) -> list[Done]:
    records = records_of(journal, role)
    undone = {seq: record.job for record in records for seq in record.undoes}
    return [Done(role.store, role, r.seq, r.job, r.kind, r.summary, r.at, undone.get(r.seq)) for r in records]


log = get_logger(__name__)


class Reader:
    """All stores and their journal, without a way to change them."""

    def __init__(
        self, journal: Path, *, limits: EngineLimits, clock: Callable[[], float], trace: Tracer = untraced
    ) -> None:
        self._journal = Journal(journal)
        self._limits = limits
        self._clock = clock
        self._trace = trace

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
        from echod.store.role_directory import stand_on  # noqa: PLC0415  slow to load, as is what follows
        from echod.store.session import RoleSession, plain_memory  # noqa: PLC0415

        with told("look into", role.path), stand_on(role) as ground:
            yield RoleSession(self._unlocked(ground), plain_memory)

    def owes(self, store: Store) -> bool:
        """Whether commits of a store are still followed, so that `settle_debts` may have something to do.

        Raises:
            StoreFault: a role's journal cannot tell.
        """
        with told("read the journal in", self._journal.root):
            return any(self._journal.of(role).open_records() for role in self._journal.roles(store))

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

    def notes(self, store: Store) -> Notes:
        """What the journal has for a person to look at in a store.

        What a role's journal cannot tell is left out: no job is done there either, and that is told by the jobs.

        Raises:
            StoreFault: the journal cannot be looked into.
        """
        reviews: list[Review] = []
        questions: list[Question] = []
        gave_back: dict[Role, frozenset[str]] = {}
        for role in self.roles(store):
            journal = self._journal.of(role)
            try:
                with told("read the journal in", journal.root):
                    said = journal.for_people()
                    if REVIEWS in said:
                        reviews += noted(journal.root)
                    if said - {REVIEWS, QUESTIONS} and (undone := journal.undoings.given_back()):
                        gave_back[role] = undone
                    if QUESTIONS in said and (questions_here := asked(journal.root)):
                        consumed = journal.known_keys()
                        questions += [question for question in questions_here if question.key in consumed]
            except StoreFault as error:
                log.info("role_not_readable_now", role=str(role.path), reason=str(error))
        return Notes(
            tuple(sorted(reviews, key=lambda review: review.at)),
            tuple(sorted(questions, key=lambda question: question.at)),
            gave_back,
        )

    def own_write(self, file: Path) -> int | None:
        """The mtime (nanoseconds) of a memory or knowledge file as echod last left it; None where it never did."""
        role = Role(store_at(file.parent.parent), file.parent.name)
        return self._journal.of(role).own_writes().get(str(file.relative_to(role.store.root)))

    def own_writes(self, store: Store) -> Mapping[Path, int]:
        """Files of a store and their mtime in nanoseconds as echod last left them; other mtimes are other people's."""
        return {
            store.root / path: mtime
            for role in self.roles(store)
            for path, mtime in self._journal.of(role).own_writes().items()
        }

    def roles(self, store: Store) -> tuple[Role, ...]:
        """The roles of a store in which something was committed, whether or not they are still there."""
        with told("read the journal in", self._journal.root):
            return self._journal.roles(store)

    def _preview(self, done: Done) -> Preview:
        from echod.store.role_directory import stand_on  # noqa: PLC0415
        from echod.store.undo import preview_record  # noqa: PLC0415

        with told("look into", done.role.path), stand_on(done.role) as ground:
            return preview_record(self._unlocked(ground), self._record(done))

    def _record(self, done: Done) -> Record:

        return next(record for record in records_of(self._journal, done.role) if record.seq == done.seq)

    def _unlocked(self, ground: Ground) -> Desk:
        """What a look works with; nothing can be committed with it."""
        from echod.store.role_lock import RoleLock  # noqa: PLC0415

        return self._at(ground, RoleLock(ground.role, None, self._clock()))

    def _at(self, ground: Ground, lock: RoleLock) -> Desk:
        from echod.store.commit.context import Desk  # noqa: PLC0415

        journal = self._journal.of(ground.role)
        return Desk(ground, journal, self._limits, self._clock, self._trace, lock, self._readings, self._probes)

    @cached_property
    def _readings(self) -> Readings:
        from echod.store.commit.context import Readings  # noqa: PLC0415

        return Readings()

    @cached_property
    def _probes(self) -> Probes:
        from echod.store.capabilities import Probes  # noqa: PLC0415

        return Probes()
