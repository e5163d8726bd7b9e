"""Read a role's archives, compose additions to them, and find forgotten entries in them.

An entry counts as forgotten while the archives of removed text contain it as forgotten and not restored. It is
recognized even if another program changed its layer, dates and confidence. Of the journal only the list of undone jobs
is needed, which the journal never deletes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from echod.clock import local_date
from echod.memory.entry_matching import EntrySignature, entry_signature
from echod.memory.forgotten import forgotten_signatures
from echod.memory.identity import BlockKey, entry_ids
from echod.memory.model import MAX_FILE_BYTES, Block, Document
from echod.memory.policy import Rule
from echod.memory.policy.archive import (
    REMOVED_STEM,
    ArchivedEntry,
    render_archived_entries,
    select_archive_file,
    to_archived_entry,
)
from echod.memory.redact import redact, redact_entry
from echod.store.commit.context import CommitContext
from echod.store.fs import Dir
from echod.store.layout import MEMORY, MEMORY_BACKUP_PREFIX

_REMOVED_ARCHIVE_NAME = re.compile(rf"{REMOVED_STEM}-(\d{{4}})(?:-(\d+))?\.md")


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
