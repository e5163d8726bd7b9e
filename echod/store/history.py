"""What was done: commits for `echod log` and for choosing what to undo. Reads the journal, changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from echod.memory.model import Document
from echod.store.commit.context import Readings
from echod.store.journal.journal import Journal
from echod.store.journal.records import Record, RecordState
from echod.store.layout import MEMORY, Role, Store


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


@dataclass(frozen=True, slots=True)
class Rewrite:
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
