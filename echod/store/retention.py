"""Bounding the journal: commits beyond the time of undo, exact images of secrets, old states, unused contents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from echod.memory.redact import redact
from echod.store.images import ImageMissing
from echod.store.journal import KnownState, RoleJournal
from echod.store.limits import EngineLimits
from echod.store.records import Record

_DAY = 86_400.0
_HOUR = 3_600.0


def retain(journal: RoleJournal, limits: EngineLimits, clock: Callable[[], float]) -> int:
    """Forget what is beyond its time in one role's journal; how many bytes that freed."""
    now = clock()
    closed = journal.closed_records()
    for record in closed[:-1]:  # the newest stays: it carries the number that the next commit follows
        if now - record.at > limits.undo_days * _DAY:
            journal.remove_closed(record)
    for record in journal.closed_records():
        if record.redacted and now - record.at > limits.redacted_days * _DAY:
            journal.amend_closed(_without_secrets(journal, record))
    journal.trim_ledger(limits.ledger_keys)
    states = _young(journal, limits, now)
    if len(states) < len(journal.states()):
        journal.keep_states(states)
    records = (*journal.open_records(), *journal.closed_records())
    wanted = {name for record in records for name in record.images()} | {state.image for state in states}
    return journal.images.sweep(wanted)


def _young(journal: RoleJournal, limits: EngineLimits, now: float) -> list[KnownState]:
    """States within the history and its bound of bytes, newest kept first; the newest always stays."""
    kept: list[KnownState] = []
    size = 0
    for state in reversed(journal.states()):
        size += journal.images.size(state.image)
        if kept and (now - state.since > limits.history_hours * _HOUR or size > limits.history_bytes):
            break
        kept.append(state)
    return kept[::-1]


def _without_secrets(journal: RoleJournal, record: Record) -> Record:
    """The record with redacted contents in the place of exact ones; undo brings those back from now on."""
    consumes = tuple(replace(c, pre=c.kept, absorbed=c.kept) for c in record.consumes)
    writes = tuple(
        replace(w, pre=_clean(journal, w.pre) if w.pre else None, absorbed=_clean(journal, w.absorbed))
        for w in record.writes
    )
    return replace(record, consumes=consumes, writes=writes)


def _clean(journal: RoleJournal, image: str) -> str:
    try:
        exact = journal.images.get(image)
    except ImageMissing:
        return image
    cleaned = redact(exact.decode(errors="surrogateescape")).text.encode(errors="surrogateescape")
    return journal.images.put(cleaned)
