"""Where texts stand that had to leave a memory file: reading the archives, and composing what is added to them.

Which entries a person forgot and did not bring back: the archives of what was removed tell it.

It holds as long as the archive stands, and an entry is known again whatever became of its layer, dates and confidence.
Of the journal only what was undone is asked, and that it does not forget.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from echod.clock import local_day
from echod.memory.alignment import Key
from echod.memory.document import parse_block
from echod.memory.entry_matching import Likeness, likeness_of
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document
from echod.memory.policy import Rule, read_archive
from echod.memory.policy.archive import REMOVED, ArchivedEntry, archive_name, archive_text, archived_entry
from echod.memory.redact import redact, redact_entry
from echod.store.commit.context import Desk
from echod.store.layout import MEMORY
from echod.store.snapshot import MAX_FILE_BYTES

_BACKUP = "MEMORY-"


@dataclass(frozen=True, slots=True)
class Archived:
    """All text in a role's archives, backups aside; ask with `in` whether a block's content stands there."""

    text: str

    def __contains__(self, content: object) -> bool:
        if not isinstance(content, str) or not content:
            return False
        return any(form in self.text for form in (content, redact(content).text, redact_entry(content).text))


def archived(desk: Desk) -> Archived:
    """Read the archives: entries that we took out stand there, so taking them out again loses nothing."""
    found = desk.ground.home.stat("archive")
    if found is None:
        return Archived("")
    directory, _ = desk.ground.place(desk.ground.path_of("archive/x"))
    names = (name for name in directory.names() if name.endswith(".md") and not name.startswith((".", _BACKUP)))
    texts = (directory.read(name, MAX_FILE_BYTES).decode(errors="replace") for name in names)
    return Archived("\n".join(text.replace("\r\n", "\n") for text in texts))


def as_kept(
    desk: Desk, gone: Iterable[tuple[str | None, Block]], after: Document, rule: Rule, file: str = MEMORY
) -> list[str | ArchivedEntry]:
    """Blocks that leave a file, as the archive is to have them: an entry can be brought back from there.

    Where another version of it stands in its place only the text is kept: that version is the newer one.

    Args:
        desk: the role's.
        gone: the blocks, each with the id that it had; None for one that is no entry.
        after: the file without them.
        rule: why, as the archive names it.
        file: the file's name.
    """
    role, day = desk.ground.role.name, local_day(desk.clock())
    standing = set(entry_ids(role, after))
    return [
        block.text if own is None or own in standing else archived_entry(block, own, role, rule, day, file=file)
        for own, block in gone
    ]


def leaving(
    desk: Desk, left: Iterable[str | ArchivedEntry], reason: str, job: int | None = None
) -> tuple[tuple[str, bytes], ...]:
    """The append that keeps what leaves in `archive/removed-{year}.md`, or in the next once that is full, redacted.

    Nothing for nothing.

    Args:
        desk: the role's.
        left: entries, and texts that are none or of which another version stays.
        reason: why, in words for a person who reads the archive.
        job: the job that takes them out; None where no job does.
    """
    day = local_day(desk.clock())
    above = f"<!-- echod: {reason}, {day.isoformat()} -->\n".encode()
    composed = b"".join(above + kept for one in left if (kept := _kept(one, job)))
    if not composed:
        return ()
    name = archive_name(day.year, _sizes(desk), len(composed), stem=REMOVED)
    return ((desk.ground.path_of(name), composed),)


def _kept(left: str | ArchivedEntry, job: int | None) -> bytes:
    if isinstance(left, ArchivedEntry):
        return archive_text([left], job) + b"\n"
    return f"{redact_entry(left).text.rstrip()}\n\n".encode() if left.strip() else b""


def _sizes(desk: Desk) -> dict[str, int]:
    """Bytes of the archives that texts are added to, by name."""
    if desk.ground.home.stat("archive") is None:
        return {}
    directory, _ = desk.ground.place(desk.ground.path_of("archive/x"))
    names = (name for name in directory.names() if name.startswith(f"{REMOVED}-"))
    return {name: found.st_size for name in names if (found := directory.stat(name)) is not None}


_FILE = re.compile(rf"{REMOVED}-(\d{{4}})(?:-(\d+))?\.md")
_TELLING = (Rule.FORGOTTEN, Rule.RESTORED)


def still_forgotten(desk: Desk, blocks: Mapping[Key, Block]) -> set[Key]:
    """Those of these blocks that are forgotten entries."""
    if not blocks:
        return set()
    gone = _forgotten(desk)
    return {key for key, block in blocks.items() if gone and likeness_of(block) in gone}


def _forgotten(desk: Desk) -> set[Likeness]:
    events = [event for name in _files(desk) for event in _read(desk, name) if event.rule in _TELLING]
    if not events:
        return set()
    undone = desk.journal.undoings.jobs()
    last = {event.id: event.rule for event in events if event.job not in undone}
    return {
        likeness_of(parse_block(event.text))
        for event in events
        if event.rule == Rule.FORGOTTEN and last.get(event.id) == Rule.FORGOTTEN
    }


def _files(desk: Desk) -> list[str]:
    """The archives of what was removed, in the order in which they were written."""
    if desk.ground.home.stat("archive") is None:
        return []
    directory, _ = desk.ground.place(desk.ground.path_of("archive/x"))
    found = [match for name in directory.names() if (match := _FILE.fullmatch(name))]
    return [m[0] for m in sorted(found, key=lambda m: (int(m[1]), int(m[2] or 1)))]


def _read(desk: Desk, name: str) -> tuple[ArchivedEntry, ...]:
    directory, _ = desk.ground.place(desk.ground.path_of("archive/x"))
    return read_archive(directory.read(name, MAX_FILE_BYTES)).entries
