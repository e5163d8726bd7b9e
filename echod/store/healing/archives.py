"""Where texts stand that had to leave a memory file: reading the archives, and composing what is added to them.

Which entries a person forgot and did not bring back: the archives of what was removed tell it.

It holds as long as the archive stands, and an entry is known again whatever became of its layer, dates and confidence.
Of the journal only what was undone is asked, and that it does not forget.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from echod.clock import local_date
from echod.memory.alignment import BlockKey
from echod.memory.document import parse_block
from echod.memory.entry_matching import EntrySignature, entry_signature
from echod.memory.identity import entry_ids
from echod.memory.model import MAX_FILE_BYTES, Block, Document
from echod.memory.policy import Rule, read_archive
from echod.memory.policy.archive import (
    REMOVED_STEM,
    ArchivedEntry,
    render_archived_entries,
    select_archive_file,
    to_archived_entry,
)
from echod.memory.redact import redact, redact_entry
from echod.store.commit.context import CommitContext
from echod.store.layout import MEMORY

_BACKUP_PREFIX = "MEMORY-"


@dataclass(frozen=True, slots=True)
class ArchiveContents:
    """All text in a role's archives, backups aside; ask with `in` whether a block's content stands there."""

    text: str

    def __contains__(self, content: object) -> bool:
        if not isinstance(content, str) or not content:
            return False
        return any(form in self.text for form in (content, redact(content).text, redact_entry(content).text))


def read_archives(context: CommitContext) -> ArchiveContents:
    """Read the archives: entries that we took out stand there, so taking them out again loses nothing."""
    found = context.directory.root.stat("archive")
    if found is None:
        return ArchiveContents("")
    directory, _ = context.directory.resolve(context.directory.path_of("archive/x"))
    names = (
        name for name in directory.list_names() if name.endswith(".md") and not name.startswith((".", _BACKUP_PREFIX))
    )
    texts = (directory.read(name, MAX_FILE_BYTES).decode(errors="replace") for name in names)
    return ArchiveContents("\n".join(text.replace("\r\n", "\n") for text in texts))


def archive_entries(
    context: CommitContext, removed: Iterable[tuple[str | None, Block]], after: Document, rule: Rule, file: str = MEMORY
) -> list[str | ArchivedEntry]:
    """Blocks that leave a file, as the archive is to have them: an entry can be brought back from there.

    Where another version of it stands in its place only the text is kept: that version is the newer one.

    Args:
        context: the role's.
        removed: the blocks, each with the id that it had; None for one that is no entry.
        after: the file without them.
        rule: why, as the archive names it.
        file: the file's name.
    """
    role, day = context.directory.role.name, local_date(context.clock())
    present_ids = set(entry_ids(role, after))
    return [
        block.text if own is None or own in present_ids else to_archived_entry(block, own, role, rule, day, file=file)
        for own, block in removed
    ]


def archive_appends(
    context: CommitContext, removed: Iterable[str | ArchivedEntry], reason: str, job: int | None = None
) -> tuple[tuple[str, bytes], ...]:
    """The append that keeps what leaves in `archive/removed-{year}.md`, or in the next once that is full, redacted.

    Nothing for nothing.

    Args:
        context: the role's.
        removed: entries, and texts that are none or of which another version stays.
        reason: why, in words for a person who reads the archive.
        job: the job that takes them out; None where no job does.
    """
    day = local_date(context.clock())
    header = f"<!-- echod: {reason}, {day.isoformat()} -->\n".encode()
    composed = b"".join(header + kept for one in removed if (kept := _format_archived(one, job)))
    if not composed:
        return ()
    name = select_archive_file(day.year, _archive_sizes(context), len(composed), stem=REMOVED_STEM)
    return ((context.directory.path_of(name), composed),)


def _format_archived(removed: str | ArchivedEntry, job: int | None) -> bytes:
    if isinstance(removed, ArchivedEntry):
        return render_archived_entries([removed], job) + b"\n"
    return f"{redact_entry(removed).text.rstrip()}\n\n".encode() if removed.strip() else b""


def _archive_sizes(context: CommitContext) -> dict[str, int]:
    """Bytes of the archives that texts are added to, by name."""
    if context.directory.root.stat("archive") is None:
        return {}
    directory, _ = context.directory.resolve(context.directory.path_of("archive/x"))
    names = (name for name in directory.list_names() if name.startswith(f"{REMOVED_STEM}-"))
    return {name: found.st_size for name in names if (found := directory.stat(name)) is not None}


_REMOVED_ARCHIVE_NAME = re.compile(rf"{REMOVED_STEM}-(\d{{4}})(?:-(\d+))?\.md")
_RELEVANT_RULES = (Rule.FORGOTTEN, Rule.RESTORED)


def forgotten_keys(context: CommitContext, blocks: Mapping[BlockKey, Block]) -> set[BlockKey]:
    """Those of these blocks that are forgotten entries."""
    if not blocks:
        return set()
    signatures = _forgotten_signatures(context)
    return {key for key, block in blocks.items() if signatures and entry_signature(block) in signatures}


def _forgotten_signatures(context: CommitContext) -> set[EntrySignature]:
    events = [
        event
        for name in _removed_archives(context)
        for event in _read_archive_entries(context, name)
        if event.rule in _RELEVANT_RULES
    ]
    if not events:
        return set()
    undone = context.journal.undo_index.undone_jobs()
    last = {event.id: event.rule for event in events if event.job not in undone}
    return {
        entry_signature(parse_block(event.text))
        for event in events
        if event.rule == Rule.FORGOTTEN and last.get(event.id) == Rule.FORGOTTEN
    }


def _removed_archives(context: CommitContext) -> list[str]:
    """The archives of what was removed, in the order in which they were written."""
    if context.directory.root.stat("archive") is None:
        return []
    directory, _ = context.directory.resolve(context.directory.path_of("archive/x"))
    found = [match for name in directory.list_names() if (match := _REMOVED_ARCHIVE_NAME.fullmatch(name))]
    return [m[0] for m in sorted(found, key=lambda m: (int(m[1]), int(m[2] or 1)))]


def _read_archive_entries(context: CommitContext, name: str) -> tuple[ArchivedEntry, ...]:
    directory, _ = context.directory.resolve(context.directory.path_of("archive/x"))
    return read_archive(directory.read(name, MAX_FILE_BYTES)).entries
