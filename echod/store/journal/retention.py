"""Bounding the journal: commits beyond the time of undo, exact images of secrets, old states, unused contents.

The journal of a store that nobody wants kept any more: how much that is, and how it goes. Not the store itself.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from echod.memory.exposed_secrets import NO_REMOVED_SECRETS, RemovedSecrets, find_removed_secrets
from echod.store.errors import as_store_error
from echod.store.journal.blobs import BlobMissingError
from echod.store.journal.journal import Journal, KnownState, RoleJournal
from echod.store.journal.records import CommitRecord
from echod.store.layout import Role, Store
from echod.store.limits import EngineLimits

_DAY = 86_400.0
_HOUR = 3_600.0


def apply_retention(journal: RoleJournal, limits: EngineLimits, clock: Callable[[], float]) -> int:
    """Forget what is beyond its time in one role's journal; how many bytes that freed."""
    now = clock()
    closed = journal.closed_records()
    for record in closed[:-1]:  # the newest stays: it carries the number that the next commit follows
        if now - record.at > limits.undo_days * _DAY:
            journal.delete_closed(record)
    for record in _redacted_records(journal, now - limits.redacted_days * _DAY):
        journal.rewrite_closed(record)
    journal.trim_ledger(limits.max_ledger_keys)
    states = _states_to_keep(journal, limits, now)
    if len(states) < len(journal.states()):
        journal.replace_states(states)
    records = (*journal.open_records(), *journal.closed_records())
    referenced = {name for record in records for name in record.blob_digests()} | {state.digest for state in states}
    return journal.blobs.delete_unreferenced(referenced)


def _states_to_keep(journal: RoleJournal, limits: EngineLimits, now: float) -> list[KnownState]:
    """States within the history and its bound of bytes, newest kept first; the newest always stays."""
    kept: list[KnownState] = []
    size = 0
    for state in reversed(journal.states()):
        size += journal.blobs.size(state.digest)
        if kept and (now - state.since > limits.history_hours * _HOUR or size > limits.max_history_bytes):
            break
        kept.append(state)
    return kept[::-1]


def _redacted_records(journal: RoleJournal, limit: float) -> Iterator[CommitRecord]:
    """Closed records that change since exact images of secrets have their end, those first that were made first.

    Where a commit made before `limit` (Unix seconds) took a secret out of a file, the secret leaves its images, and
    those of earlier commits, which held it too. What the file still holds stays in the images. From now on undo brings
    back what is left.
    """
    removed: dict[str, RemovedSecrets] = {}
    changed: list[CommitRecord] = []
    for record in reversed(journal.closed_records()):
        expired = record.redacted and not record.blobs_redacted and record.at < limit
        if expired:
            for path, secrets in _removed_secrets(journal, record):
                removed[path] = removed.get(path, NO_REMOVED_SECRETS).union(secrets)
        redacted = _without_secrets(journal, record, removed, expired=expired)
        if expired or redacted != record:
            changed.append(replace(redacted, blobs_redacted=True))
    # A kill in between must not make what was taken out unknown: the commit that tells it is amended last.
    return reversed(changed)


def _removed_secrets(journal: RoleJournal, record: CommitRecord) -> Iterator[tuple[str, RemovedSecrets]]:
    versions = [(w.path, w.before_digest, w.after_digest) for w in record.writes if w.before_digest is not None]
    versions += [(c.path, c.before_digest, c.archived_digest) for c in record.consumes]
    for path, before, after in versions:
        try:
            yield path, find_removed_secrets(journal.blobs.get(before), journal.blobs.get(after))
        except BlobMissingError:
            continue


def _without_secrets(
    journal: RoleJournal, record: CommitRecord, removed: Mapping[str, RemovedSecrets], *, expired: bool
) -> CommitRecord:
    all_removed = NO_REMOVED_SECRETS.union(*removed.values())
    writes = []
    for write in record.writes:
        # A file that the commit made may be a copy of another one, as backups are.
        secrets = all_removed if write.before_digest is None else removed.get(write.path, NO_REMOVED_SECRETS)
        pre = None if write.before_digest is None else _redact_blob(journal, write.before_digest, secrets)
        post, absorbed = (_redact_blob(journal, image, secrets) for image in (write.after_digest, write.merged_digest))
        writes.append(replace(write, before_digest=pre, after_digest=post, merged_digest=absorbed))
    consumes = tuple(
        replace(c, before_digest=c.archived_digest, merged_digest=c.archived_digest) if expired else c
        for c in record.consumes
    )
    return replace(record, writes=tuple(writes), consumes=consumes)


def _redact_blob(journal: RoleJournal, digest: str, secrets: RemovedSecrets) -> str:
    if not secrets:
        return digest
    try:
        return journal.blobs.put(secrets.strip_from(journal.blobs.get(digest)))
    except BlobMissingError:
        return digest


_DELETING = ".purged-"


def journal_bytes(journal: Path, store: Store) -> int:
    """What the journal keeps about a store, in bytes; 0 for nothing."""
    with as_store_error("read the journal in", journal):
        walk = os.walk(_store_directory(journal, store))
        return sum((Path(place) / name).lstat().st_size for place, _, names in walk for name in names)


def delete_journal(journal: Path, store: Store) -> None:
    """Remove all of it: what was done there can neither be listed nor undone any more.

    Whoever calls holds the worker lock, and has closed what was open (`Engine.merge_late_writes`).

    Raises:
        StoreError: it cannot be removed.
    """
    directory = _store_directory(journal, store)
    with as_store_error("tidy up the journal in", journal):
        finish_deletions(journal)
        if directory.exists():
            # In one step, so that nobody ever finds half a journal.
            directory.rename(journal.with_name(_DELETING + directory.name))
            finish_deletions(journal)


def finish_deletions(journal: Path) -> None:
    """Remove what a process left that was killed while it forgot a store. Whoever calls holds the worker lock."""
    for leftover in sorted(journal.parent.glob(f"{_DELETING}*")):
        shutil.rmtree(leftover)


def _store_directory(journal: Path, store: Store) -> Path:
    return Journal(journal).role_journal(Role(store, "")).root.parent
