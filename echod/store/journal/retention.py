"""Bounding the journal: commits beyond the time of undo, exact images of secrets, old states, unused contents.

The journal of a store that nobody wants kept any more: how much that is, and how it goes. Not the store itself.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from echod.memory.exposed_secrets import NOTHING, Gone, taken_out
from echod.store.errors import told
from echod.store.journal.blobs import ImageMissing
from echod.store.journal.journal import Journal, KnownState, RoleJournal
from echod.store.journal.records import Record
from echod.store.layout import Role, Store
from echod.store.limits import EngineLimits

_DAY = 86_400.0
_HOUR = 3_600.0


def retain(journal: RoleJournal, limits: EngineLimits, clock: Callable[[], float]) -> int:
    """Forget what is beyond its time in one role's journal; how many bytes that freed."""
    now = clock()
    closed = journal.closed_records()
    for record in closed[:-1]:  # the newest stays: it carries the number that the next commit follows
        if now - record.at > limits.undo_days * _DAY:
            journal.remove_closed(record)
    for record in _cleaned(journal, now - limits.redacted_days * _DAY):
        journal.amend_closed(record)
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


def _cleaned(journal: RoleJournal, limit: float) -> Iterator[Record]:
    """Closed records that change since exact images of secrets have their end, those first that were made first.

    Where a commit made before `limit` (Unix seconds) took a secret out of a file, the secret leaves its images, and
    those of earlier commits, which held it too. What the file still holds stays in the images. From now on undo brings
    back what is left.
    """
    gone: dict[str, Gone] = {}
    changed: list[Record] = []
    for record in reversed(journal.closed_records()):
        over = record.redacted and not record.thinned and record.at < limit
        if over:
            for path, secrets in _taken_out(journal, record):
                gone[path] = gone.get(path, NOTHING).union(secrets)
        cleaned = _without(journal, record, gone, over=over)
        if over or cleaned != record:
            changed.append(replace(cleaned, thinned=True))
    # A kill in between must not make what was taken out unknown: the commit that tells it is amended last.
    return reversed(changed)


def _taken_out(journal: RoleJournal, record: Record) -> Iterator[tuple[str, Gone]]:
    versions = [(w.path, w.pre, w.post) for w in record.writes if w.pre is not None]
    versions += [(c.path, c.pre, c.kept) for c in record.consumes]
    for path, before, after in versions:
        try:
            yield path, taken_out(journal.images.get(before), journal.images.get(after))
        except ImageMissing:
            continue


def _without(journal: RoleJournal, record: Record, gone: Mapping[str, Gone], *, over: bool) -> Record:
    everywhere = NOTHING.union(*gone.values())
    writes = []
    for write in record.writes:
        # A file that the commit made may be a copy of another one, as backups are.
        secrets = everywhere if write.pre is None else gone.get(write.path, NOTHING)
        pre = None if write.pre is None else _clean(journal, write.pre, secrets)
        post, absorbed = (_clean(journal, image, secrets) for image in (write.post, write.absorbed))
        writes.append(replace(write, pre=pre, post=post, absorbed=absorbed))
    consumes = tuple(replace(c, pre=c.kept, absorbed=c.kept) if over else c for c in record.consumes)
    return replace(record, writes=tuple(writes), consumes=consumes)


def _clean(journal: RoleJournal, image: str, secrets: Gone) -> str:
    if not secrets:
        return image
    try:
        return journal.images.put(secrets.out_of(journal.images.get(image)))
    except ImageMissing:
        return image


_GOING = ".purged-"


def journal_bytes(journal: Path, store: Store) -> int:
    """What the journal keeps about a store, in bytes; 0 for nothing."""
    with told("read the journal in", journal):
        found = os.walk(_directory(journal, store))
        return sum((Path(place) / name).lstat().st_size for place, _, names in found for name in names)


def forget(journal: Path, store: Store) -> None:
    """Remove all of it: what was done there can neither be listed nor undone any more.

    Whoever calls holds the worker lock, and has closed what was open (`Engine.settle_debts`).

    Raises:
        StoreFault: it cannot be removed.
    """
    directory = _directory(journal, store)
    with told("tidy up the journal in", journal):
        finish(journal)
        if directory.exists():
            # In one step, so that nobody ever finds half a journal.
            directory.rename(journal.with_name(_GOING + directory.name))
            finish(journal)


def finish(journal: Path) -> None:
    """Remove what a process left that was killed while it forgot a store. Whoever calls holds the worker lock."""
    for going in sorted(journal.parent.glob(f"{_GOING}*")):
        shutil.rmtree(going)


def _directory(journal: Path, store: Store) -> Path:
    return Journal(journal).of(Role(store, "")).root.parent
