"""The end of a commit: its displaced and claimed files are tidied away, the record becomes history."""

from __future__ import annotations

from dataclasses import replace

from echod.logger import get_logger
from echod.store.commit.context import Desk
from echod.store.commit.steps import Step
from echod.store.errors import told
from echod.store.journal.journal import KnownState, RoleJournal
from echod.store.journal.records import Record, RecordState
from echod.store.late import followed_files, late_bytes
from echod.store.layout import MEMORY

log = get_logger(__name__)

_HOUR = 3600.0


def is_over(desk: Desk, record: Record) -> bool:
    """Whether a record is old enough, and nobody can write to its files, and they hold nothing new."""
    if desk.clock() - record.at <= desk.limits.displaced_hours * _HOUR:
        return False
    for path, name, absorbed in followed_files(record):
        late = late_bytes(desk, path, name)
        if late.data is not None and not (late.final and late.holds(absorbed)):
            desk.journal.settled.discard((record.seq, record.at))
            return False
    return True


def abandon(journal: RoleJournal, *, older_than: float) -> None:
    """Close what is open in a role whose directory a person removed; its contents stay in the journal for a while."""
    for record in journal.open_records():
        if record.at < older_than:
            log.warning("commit_abandoned", role=record.role, seq=record.seq, state=record.state.value)
            journal.enter_ledger(record)
            journal.close(replace(record, state=RecordState.CLOSED))


def close(desk: Desk, record: Record) -> None:
    """Remove what was displaced and claimed, and move the record to the history."""
    desk.trace(Step.CLOSING)
    with told("tidy up in", desk.ground.role.path):
        for path, name, _ in followed_files(record):
            directory, _ = desk.ground.place(path)
            directory.unlink(name)
        desk.trace(Step.FORGOTTEN)
        desk.journal.enter_ledger(record)
        for write in record.writes:
            if write.path == desk.ground.path_of(MEMORY):
                states = [KnownState(i, record.at, record.head) for i in (write.pre, write.post) if i]
                desk.journal.note_states(states)
        desk.journal.close(replace(record, state=RecordState.CLOSED))
    desk.trace(Step.CLOSED)
