"""Limit the journal: old commits, exact blobs of redacted secrets, old states, unused contents.

The last section measures and deletes the journal of a store that is no longer managed. It never touches the store.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from echod.memory.redact import NO_REMOVED_SECRETS, RemovedSecrets, find_removed_secrets
from echod.store.errors import EngineLimits, as_store_error
from echod.store.journal.files import BlobMissingError
from echod.store.journal.journal import Journal, KnownState, RoleJournal
from echod.store.journal.records import SHORTEST_INTERVAL, CommitRecord, Reading, Timeline
from echod.store.layout import Store

_DELETED_PREFIX = ".purged-"


def apply_retention(journal: RoleJournal, limits: EngineLimits, clock: Callable[[], float]) -> int:
    """Delete expired data from one role's journal and return the freed bytes."""
    now = clock()
    closed = journal.closed_records()
    timeline = _bounded_timeline(journal, closed, now)
    for record in closed[:-1]:  # the newest remains: the next commit gets the number after it
        if now - timeline.latest(record.at) > limits.undo_seconds:
            journal.delete_closed(record)
    for record in _redacted_records(journal, timeline, now - limits.redacted_seconds):
        journal.rewrite_closed(record)
    journal.ledger.trim(limits.max_ledger_keys)
    states = _states_to_keep(journal, limits, timeline, now)
    if len(states) < len(journal.states()):
        journal.replace_states(states)
    records = (*journal.open_records(), *journal.closed_records())
    referenced = {name for record in records for name in record.blob_digests()} | {state.digest for state in states}
    return journal.blobs.delete_unreferenced(referenced)


def _bounded_timeline(journal: RoleJournal, closed: tuple[CommitRecord, ...], now: float) -> Timeline:
    """Return the times of everything in the journal, each with a latest one.

    If the clock was ahead and the role has been quiet since, nothing bounds the last commits, and they would be kept
    until the clock gets there. Then this moment is recorded: everything in the journal happened before it.
    """
    orders = [record.at for record in (*closed, *journal.open_records())] + [state.since for state in journal.states()]
    timeline = journal.timeline(now, closed)
    if orders and timeline.latest(max(orders)) == float("inf"):
        journal.record_reading(Reading(max(orders) + SHORTEST_INTERVAL / 2, now))
        timeline = journal.timeline(now, closed)
    return timeline


def _states_to_keep(journal: RoleJournal, limits: EngineLimits, timeline: Timeline, now: float) -> list[KnownState]:
    """Return the newest states within the history and its limit of bytes, oldest first. The newest always remains.

    The history ends with the newest state: a file that was overwritten soon after it may not have been read since.
    But a replaced state with a secret that the newest one does not contain remains only as long as exact blobs do.
    """
    newest_first: list[KnownState] = []
    size, states = 0, journal.states()
    replaced_at = float("inf")
    for state in reversed(states):
        size += journal.blobs.size(state.digest)
        end = min(now, timeline.earliest(newest_first[0].since)) if newest_first else now
        if newest_first and (
            end - timeline.latest(state.since) > limits.history_seconds or size > limits.max_history_bytes
        ):
            break
        expired = now - replaced_at > limits.redacted_seconds
        if not (expired and _lost_secrets(journal, state, states[-1])):
            newest_first.append(state)
        replaced_at = timeline.latest(state.since)
    return newest_first[::-1]


def _lost_secrets(journal: RoleJournal, state: KnownState, newest: KnownState) -> bool:
    """Return whether a state contains secrets that the newest state does not contain."""
    try:
        content = journal.blobs.get(state.digest)
    except BlobMissingError:
        return False
    try:
        return bool(find_removed_secrets(content, journal.blobs.get(newest.digest)))
    except BlobMissingError:
        return bool(find_removed_secrets(content, b""))


def _redacted_records(journal: RoleJournal, timeline: Timeline, expired_before: float) -> Iterator[CommitRecord]:
    """Return the closed records that change when exact blobs of secrets expire, oldest first.

    If a commit made before `expired_before` (Unix seconds) removed a secret from a file, the secret is removed from the
    blobs of that commit, and from those of earlier commits, which contained it too. Secrets that the file still
    contains remain in the blobs. From then on an undo restores the redacted text.
    """
    removed: dict[str, RemovedSecrets] = {}
    changed: list[CommitRecord] = []
    for record in reversed(journal.closed_records()):
        expired = record.redacted and not record.blobs_redacted and timeline.latest(record.at) < expired_before
        if expired:
            for path, secrets in _removed_secrets(journal, record):
                removed[path] = removed.get(path, NO_REMOVED_SECRETS).union(secrets)
        redacted = _without_secrets(journal, record, removed, expired=expired)
        if expired or redacted != record:
            changed.append(redacted._replace(blobs_redacted=True))
    # A kill in between must not lose which secrets were removed: the commit that shows them is rewritten last.
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
        # A file that the commit created may be a copy of another one, as backups are.
        secrets = all_removed if write.before_digest is None else removed.get(write.path, NO_REMOVED_SECRETS)
        before = None if write.before_digest is None else _redact_blob(journal, write.before_digest, secrets)
        after, merged = (_redact_blob(journal, digest, secrets) for digest in (write.after_digest, write.merged_digest))
        writes.append(write._replace(before_digest=before, after_digest=after, merged_digest=merged))
    consumes = tuple(
        c._replace(before_digest=c.archived_digest, merged_digest=c.archived_digest) if expired else c
        for c in record.consumes
    )
    return record._replace(writes=tuple(writes), consumes=consumes)


def _redact_blob(journal: RoleJournal, digest: str, secrets: RemovedSecrets) -> str:
    if not secrets:
        return digest
    try:
        return journal.blobs.put(secrets.strip_from(journal.blobs.get(digest)))
    except BlobMissingError:
        return digest


def journal_bytes(journal: Path, store: Store) -> int:
    """Return the size of a store's journal in bytes; 0 without one."""
    with as_store_error("read the journal in", journal):
        walk = os.walk(Journal(journal).store_directory(store))
        return sum((Path(directory) / name).lstat().st_size for directory, _, names in walk for name in names)


def delete_journal(journal: Path, store: Store) -> None:
    """Delete a store's journal, after which nothing there can be listed or undone.

    The caller holds the worker lock and has closed all open commits (`Engine.merge_late_writes`).
    """
    directory = Journal(journal).store_directory(store)
    with as_store_error("clean up the journal in", journal):
        finish_deletions(journal)
        if directory.exists():
            # In one step, so that no process ever finds half a journal.
            directory.rename(journal.with_name(_DELETED_PREFIX + directory.name))
            finish_deletions(journal)


def finish_deletions(journal: Path) -> None:
    """Remove the leftovers of a process that was killed in `delete_journal`. The caller holds the worker lock."""
    for leftover in sorted(journal.parent.glob(f"{_DELETED_PREFIX}*")):
        shutil.rmtree(leftover)
