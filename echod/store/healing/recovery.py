"""Finish the commits that a crash interrupted, or take them back if others have changed the files since.

Recovery first sweeps staged files without a record, because afterwards its own commits would have files that look the
same. Then it goes through every intent, oldest first. A crash inside recovery is the same case again.

Between the crash and now anything may have happened: `git clean` took the stage, a checkout put another version in
place, an agent edited the file. So an intent without a visible change is redone only if the files still have the
contents it was planned from. Otherwise it is rolled back, and the job plans again. And findings are consumed only if
their entries are seen in the memory or in an archive. Otherwise they get their names back.

An entry counts as forgotten while the archives of removed text contain it as forgotten and not restored. It is
recognized even if another program changed its layer, dates and confidence. Of the journal only the list of undone jobs
is needed, which the journal never deletes.

The last section gives lineage the known contents of a memory file, to compare with the file on the disk. With them are
the blocks consumed from findings seconds ago that must be restored if they vanish, each with a limit of restores.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from echod.clock import local_date
from echod.files import content_digest
from echod.lazy import lazy_pattern
from echod.log import get_logger
from echod.memory import MAX_FILE_BYTES
from echod.memory.archive import (
    REMOVED_STEM,
    ArchivedEntry,
    forgotten_signatures,
    render_archived_entries,
    select_archive_file,
    to_archived_entry,
)
from echod.memory.conservation import missing_additions
from echod.memory.entry_matching import EntrySignature, entry_signature
from echod.memory.identity import BlockKey, BlockTexts, block_content, entry_ids, numbered_keys
from echod.memory.lineage import (
    CurrentVersion,
    Descent,
    KnownVersion,
    StaleWrite,
    SuspectedStaleWrite,
    classify_descent,
)
from echod.memory.model import Block, Document
from echod.memory.policy_model import Rule
from echod.memory.redact import redact, redact_entry
from echod.store.commit.apply import apply_record, is_claimed, remove_staged_files, roll_back, write_state
from echod.store.commit.context import CommitContext, CommitStep
from echod.store.commit.file_steps import StageState
from echod.store.errors import as_store_error
from echod.store.fs import NEW_FILE_MODE, Dir, create_durable_file, rename_noreplace_or_link
from echod.store.journal.files import BlobMissingError
from echod.store.journal.journal import KnownState
from echod.store.journal.records import CommitRecord, ConsumeRecord, RecordState, WriteRecord
from echod.store.layout import MEMORY, MEMORY_BACKUP_PREFIX, restored_findings_name
from echod.store.private_directory import commit_of

_REMOVED_ARCHIVE_NAME = lazy_pattern(rf"{REMOVED_STEM}-(\d{{4}})(?:-(\d+))?\.md")


@dataclass(frozen=True, slots=True)
class ArchiveContents:
    """All text in a role's archives except backups. `content in archives` checks for a block's content."""

    text: str

    def __contains__(self, content: object) -> bool:
        if not isinstance(content, str) or not content:
            return False
        return any(form in self.text for form in (content, redact(content).text, redact_entry(content).text))


def read_archives(context: CommitContext) -> ArchiveContents:
    """Read the archives. Removing an entry again that they contain loses nothing."""
    archive = context.directory.archive()
    if archive is None:
        return ArchiveContents("")
    excluded = (".", MEMORY_BACKUP_PREFIX)
    names = (name for name in archive.list_names() if name.endswith(".md") and not name.startswith(excluded))
    texts = (archive.read(name, MAX_FILE_BYTES).decode(errors="replace") for name in names)
    return ArchiveContents("\n".join(text.replace("\r\n", "\n") for text in texts))


def archive_entries(
    context: CommitContext, removed: Iterable[tuple[str | None, Block]], after: Document, rule: Rule, file: str = MEMORY
) -> list[str | ArchivedEntry]:
    """Return removed blocks in the form in which the archive stores them, from which an entry can be restored.

    Each block in `removed` has the id that it had, or None if it is not an entry. If `after`, the file without them,
    still contains another version of the entry, only the text is stored, because that version is newer.
    """
    role, day = context.role.name, local_date(context.clock())
    present_ids = set(entry_ids(role, after))
    return [
        block.text
        if entry_id is None or entry_id in present_ids
        else to_archived_entry(block, entry_id, role, rule, day, file=file)
        for entry_id, block in removed
    ]


def archive_appends(
    context: CommitContext, removed: Iterable[str | ArchivedEntry], reason: str, job: int | None = None
) -> tuple[tuple[str, bytes], ...]:
    """Return the append, if any, that stores removed text, redacted, in `archive/removed-{year}.md`.

    The next file is used if that one is full. `reason` is for the user who reads the archive.
    """
    day = local_date(context.clock())
    header = f"<!-- echod: {reason}, {day.isoformat()} -->\n".encode()
    composed = b"".join(header + text for item in removed if (text := _format_archived(item, job)))
    if not composed:
        return ()
    name = select_archive_file(day.year, _archive_sizes(context), len(composed), stem=REMOVED_STEM)
    return ((context.directory.path_of(name), composed),)


def _format_archived(removed: str | ArchivedEntry, job: int | None) -> bytes:
    if isinstance(removed, ArchivedEntry):
        return render_archived_entries([removed], job) + b"\n"
    return f"{redact_entry(removed).text.rstrip()}\n\n".encode() if removed.strip() else b""


def _archive_sizes(context: CommitContext) -> dict[str, int]:
    archive = context.directory.archive()
    if archive is None:
        return {}
    names = (name for name in archive.list_names() if name.startswith(f"{REMOVED_STEM}-"))
    return {name: status.st_size for name in names if (status := archive.stat(name)) is not None}


def forgotten_keys(context: CommitContext, blocks: Mapping[BlockKey, Block]) -> set[BlockKey]:
    """Return the keys of those blocks that are forgotten entries."""
    archive = context.directory.archive()
    if not blocks or archive is None:
        return set()
    signatures = _forgotten_signatures(context, archive)
    return {key for key, block in blocks.items() if signatures and entry_signature(block) in signatures}


def _forgotten_signatures(context: CommitContext, archive: Dir) -> set[EntrySignature]:
    contents = [archive.read(name, MAX_FILE_BYTES) for name in _removed_archive_names(archive)]
    return forgotten_signatures(contents, context.journal.undo_index.undone_jobs()) if contents else set()


def _removed_archive_names(archive: Dir) -> list[str]:
    """Return the archives of removed text in the order in which they were written."""
    matches = [match for name in archive.list_names() if (match := _REMOVED_ARCHIVE_NAME.fullmatch(name))]
    return [m[0] for m in sorted(matches, key=lambda m: (int(m[1]), int(m[2] or 1)))]


log = get_logger(__name__)


class DeferredRecovery(NamedTuple):
    """A role whose recovery must wait, with the reason. Other roles are not affected."""

    role: str
    reason: str


class RecoveryReport(NamedTuple):
    """The result of a recovery: finished commits, the number of swept staged files, roles that must wait."""

    redone: tuple[CommitRecord, ...] = ()
    swept_files: int = 0
    deferred: tuple[DeferredRecovery, ...] = ()


def recover_role(context: CommitContext) -> RecoveryReport:
    """Finish everything that is half done in a role. After a `StoreError` everything remains for the next attempt."""
    records = context.journal.open_records()
    # The time to list a directory grows with its files, so it is listed only if a kill may have left staged files.
    may_have_staged_files = context.journal.staging_recorded() or not context.journal.staged_files_swept
    swept = _sweep_staged_files(context, records) if may_have_staged_files else 0
    context.trace(CommitStep.SWEPT)
    redone = []
    for record in records:
        if record.state is RecordState.INTENT:
            context.trace(CommitStep.REDOING)
            if _is_outdated(context, record):
                _take_back(context, record)
                continue
            redone.append(apply_record(context, record, _release_unseen))
            log.info("commit_redone", role=str(context.role.path), seq=record.seq, kind=record.kind)
    return RecoveryReport(tuple(redone), swept)


def _sweep_staged_files(context: CommitContext, records: tuple[CommitRecord, ...]) -> int:
    known_seqs = {record.seq for record in records}
    swept = 0
    with as_store_error("list", context.directory.root.path):
        for directory in context.directory.private_directories():
            for name in directory.list_names():
                seq = commit_of(name, context.journal.journal_id)
                if seq is not None and seq not in known_seqs:
                    directory.unlink(name)
                    swept += 1
    context.journal.clear_staging()
    context.journal.staged_files_swept = True
    return swept


def _is_outdated(context: CommitContext, record: CommitRecord) -> bool:
    """Return whether nothing of a commit is visible, and a file is no longer the one that it was planned from."""
    if any(is_claimed(context, consume) for consume in record.consumes):
        return False
    if any(write_state(context, write) is StageState.PUBLISHED for write in record.writes):
        return False
    if any(_digest(context, write.path) != write.before_digest for write in record.writes):
        return True
    if not (record.consumes or record.partial_consumes) or _memory_write(context, record) is not None:
        return False
    return not _is_memory_known(context)


def _take_back(context: CommitContext, record: CommitRecord) -> None:
    """Roll back a commit without a visible change.

    If the stage was lost, claimed findings may have been lost with it. They get their names back from the journal.
    """
    if any(write_state(context, write) is StageState.LOST for write in record.writes):
        for consume in record.consumes:
            _give_back(context, record, consume)
        context.directory.root.sync()
    # If a findings file is not there any more, the text that the archive got may be its only copy.
    if all(_digest(context, consume.path) == consume.before_digest for consume in record.consumes):
        roll_back(context, record)
    else:
        remove_staged_files(context, record)
        context.journal.discard(record)
    log.warning("commit_taken_back", role=str(context.role.path), seq=record.seq, kind=record.kind)


def _release_unseen(context: CommitContext, record: CommitRecord) -> CommitRecord:
    """Give findings their names back if their entries are in neither the memory nor an archive.

    What an undo consumes are files of echod's own, whose text is in the archive.
    """
    if record.undoes or not (record.consumes or record.partial_consumes) or _is_seen(context, record):
        return record
    for consume in record.consumes:
        _give_back(context, record, consume)
    context.directory.root.sync()
    record = record._replace(consumes=(), partial_consumes=())
    context.journal.save(record)
    log.warning("findings_given_back", role=str(context.role.path), seq=record.seq)
    return record


def _is_seen(context: CommitContext, record: CommitRecord) -> bool:
    write = _memory_write(context, record)
    if write is None:
        return _is_memory_known(context)
    before = context.cache.parse_before(context.journal, write.before_digest)
    after = context.cache.parse_blob(context.journal, write.after_digest)
    visible = context.cache.parse_document(_read(context, write.path) or b"")
    if before is None or after is None or visible is None:
        return False
    missing = missing_additions(before, after, visible)
    archives = read_archives(context) if missing else ()
    return all(block_content(block) in archives for block in missing)


def _memory_write(context: CommitContext, record: CommitRecord) -> WriteRecord | None:
    return next((write for write in record.writes if write.path == context.memory_path), None)


def _is_memory_known(context: CommitContext) -> bool:
    """Return whether the memory is as it was when a plan was made that did not change it."""
    newest = context.journal.newest_state()
    return newest is not None and newest.digest == content_digest(_read(context, context.memory_path) or b"")


def _give_back(context: CommitContext, record: CommitRecord, consume: ConsumeRecord) -> None:
    directory, name = context.directory.resolve(consume.path)
    private = context.directory.open_private(consume.private)
    if private.inode(consume.claimed_name) is None:
        if directory.inode(name) is not None:
            return  # it was not claimed
        with suppress(BlobMissingError):
            data = context.journal.blobs.get(consume.before_digest)
            create_durable_file(private, consume.claimed_name, data, NEW_FILE_MODE)
    for new_name in (name, restored_findings_name(name, record.seq)):
        with suppress(FileExistsError, FileNotFoundError):
            rename_noreplace_or_link(private, consume.claimed_name, directory, new_name)
            return


def _digest(context: CommitContext, path: str) -> str | None:
    data = _read(context, path)
    return None if data is None else content_digest(data)


def _read(context: CommitContext, path: str) -> bytes | None:
    """Return the content of a file as it is now, perhaps half-written, or None if there is no such file."""
    directory, name = context.directory.resolve(path)
    try:
        return directory.read(name, MAX_FILE_BYTES)
    except FileNotFoundError:
        return None


class KnownDocument(NamedTuple):
    """A known state with its document."""

    version: KnownVersion
    document: Document
    head: str | None


def recent_states(context: CommitContext) -> tuple[KnownDocument, ...]:
    """Return the known states within the history, oldest first, without those whose content was lost.

    The history ends with the newest state. So an overwrite is recognized however long nothing looked at the file.
    """
    timeline, states = context.journal.timeline(context.clock()), context.journal.states()
    oldest = timeline.earliest(states[-1].since) - context.limits.history_seconds if states else 0.0
    recent = (state for state in states if timeline.latest(state.since) >= oldest)
    bounded = (state._replace(since=timeline.earliest(state.since)) for state in recent)
    return tuple(known for state in bounded if (known := load_state(context, state)) is not None)


def load_state(context: CommitContext, state: KnownState) -> KnownDocument | None:
    """Return a known state with its document, or None if its content was lost."""
    document = context.cache.parse_blob(context.journal, state.digest)
    if document is None:
        return None
    shape = context.cache.shape(state.digest, document)
    return KnownDocument(KnownVersion(state.digest, state.since, shape), document, state.head)


def load_newest_state(context: CommitContext) -> KnownDocument | None:
    """Return the newest known state with its document, or None if it does not exist or its content was lost."""
    state = context.journal.newest_state()
    return load_state(context, state) if state else None


def classify_known_descent(context: CommitContext, current: CurrentVersion, known: Iterable[KnownDocument]) -> Descent:
    """Return how a version descends from the known states.

    A stale write is only certain within the history. Later the user may have removed the same blocks, and is asked.
    """
    versions, now = [k.version for k in known], context.clock()
    descent = classify_descent(current, versions, now=now, young_seconds=context.limits.young_seconds)
    if isinstance(descent, StaleWrite) and now - versions[-1].visible_since > context.limits.history_seconds:
        return SuspectedStaleWrite(descent.missing)
    return descent


def keyed_blocks(document: Document) -> zip[tuple[BlockKey, Block]]:
    """Return the blocks of a document with their keys."""
    return zip(numbered_keys(document), document.blocks, strict=True)


def restore_key(key: BlockKey) -> str:
    """Return the name under which the restores of a block are counted."""
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]


def restored_too_often(context: CommitContext, keys: Iterable[BlockKey]) -> set[BlockKey]:
    """Return the blocks that were restored so often that now the user decides."""
    counts = Counter(name for record in context.journal.open_records() for name in record.restored_blocks)
    return {key for key in keys if counts[restore_key(key)] >= context.limits.max_restores}


def blocks_to_restore(context: CommitContext, data: bytes, archives: ArchiveContents) -> dict[BlockKey, Block]:
    """Return the blocks that were consumed from findings moments ago and are in neither the memory nor an archive.

    What later jobs did to such a block counts: an edited one is restored as edited, a removed one is not restored.
    """
    document, young = context.cache.parse_document(data), recently_consumed(context)
    if document is None or not young:
        return {}
    pending: dict[BlockKey, Block] = {}
    for record in context.journal.open_records():
        for change in _memory_changes(context, record):
            if record.job is not None and pending:
                pending = _after_change(pending, change)
            if record.seq in young:
                pending.update((k, b) for k, b in keyed_blocks(change.after) if k not in change.texts_before)
    present, keys = {block_content(block) for block in document.blocks}, set(numbered_keys(document))
    contents = ((key, block, block_content(block)) for key, block in pending.items() if key not in keys)
    missing = {k: block for k, block, content in contents if content not in present and content not in archives}
    exhausted = restored_too_often(context, missing)
    return {key: block for key, block in missing.items() if key not in exhausted}


def recently_consumed(context: CommitContext) -> frozenset[int]:
    """Return the numbers of the young commits that consumed findings and were not undone."""
    now = context.clock()
    timeline, since = context.journal.timeline(now), now - context.limits.young_seconds
    records = context.journal.open_records()
    undone = {seq for record in records for seq in record.undoes}
    return frozenset(
        record.seq
        for record in records
        if record.state is RecordState.APPLIED and (record.consumes or record.partial_consumes)
        if timeline.earliest(record.at) >= since and record.seq not in undone
    )


class _MemoryChange(NamedTuple):
    """The memory after a commit, and the texts of its blocks before and after."""

    after: Document
    texts_before: BlockTexts
    texts_after: BlockTexts


def _memory_changes(context: CommitContext, record: CommitRecord) -> Iterator[_MemoryChange]:
    """Yield the change of the memory by an applied commit, as far as the journal still has the contents."""
    for write in record.writes if record.state is RecordState.APPLIED else ():
        if write.path != context.memory_path:
            continue
        after = context.cache.parse_blob(context.journal, write.after_digest)
        before = context.cache.parse_before(context.journal, write.before_digest)
        if before is not None and after is not None:
            texts_before = context.cache.shape(write.before_digest, before) if write.before_digest else {}
            yield _MemoryChange(after, texts_before, context.cache.shape(write.after_digest, after))


def _after_change(pending: Mapping[BlockKey, Block], change: _MemoryChange) -> dict[BlockKey, Block]:
    """Return what a job left of these blocks."""
    left = {k: b for k, b in pending.items() if k in change.texts_after or k not in change.texts_before}
    edited = {k for k, b in left.items() if change.texts_after.get(k, block_content(b)) != block_content(b)}
    return left | {k: b for k, b in keyed_blocks(change.after) if k in edited} if edited else left
