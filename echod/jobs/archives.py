"""The archives of a role as the policies' jobs see them: how full they are, and which backup is there already."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from echod.files import read_plain
from echod.memory.policy import ArchivedEntry, archive_name, archive_text, read_archive
from echod.memory.policy.archive import PRUNED, REMOVED
from echod.memory.redact import redact_entry
from echod.store.changes import Append
from echod.store.errors import told
from echod.store.layout import Role
from echod.store.snapshot import MAX_FILE_BYTES

_BACKUP = re.compile(r"MEMORY-\d{4}-\d{2}-\d{2}(-\d+)?\.md")
_DIRECTORY = "archive"
_BACKUP_PREFIX = "MEMORY-"


class Kept(NamedTuple):
    """An entry of an archive, and the file that it stands in, relative to the role."""

    file: str
    entry: ArchivedEntry


def pruned_sizes(role: Role) -> Mapping[str, int]:
    """Bytes of the files in the role's archive that pruned entries are appended to, by name."""
    return _sizes(role, PRUNED)


def pruned(role: Role, today: date, entries: Iterable[ArchivedEntry], job: int) -> tuple[Append, ...]:
    """What a change set adds to the archive of a role for entries that a rule takes out; nothing for none."""
    return _taken_out(role, today, entries, job, PRUNED)


def removed(role: Role, today: date, entries: Iterable[ArchivedEntry], job: int) -> tuple[Append, ...]:
    """What a change set adds to the archive of a role for entries that a person takes out; nothing for none."""
    return _taken_out(role, today, entries, job, REMOVED)


def gave_way(role: Role, text: str | None, today: date) -> tuple[Append, ...]:
    """What a change set adds to the archive of a role for the short form of an entry whose full text comes back."""
    if text is None:
        return ()
    data = f"\n<!-- echod: gave way to its full text, {today.isoformat()} -->\n{redact_entry(text).text.rstrip()}\n"
    return (Append(_roomy(role, today, len(data.encode()), REMOVED), data.encode()),)


def archived_entries(role: Role) -> tuple[Kept, ...]:
    """Every entry in the archive of a role, oldest first. Backups are no archive.

    Raises:
        StoreFault: the archive cannot be read.
    """
    with told("read the archive of", role.path):
        names = [e.name for e in _files(role, "") if e.name.endswith(".md") and not e.name.startswith(_BACKUP_PREFIX)]
        found = [
            Kept(f"{_DIRECTORY}/{name}", entry)
            for name in sorted(names, key=lambda name: (len(name), name))
            for entry in read_archive(read_plain(role.path / _DIRECTORY / name, MAX_FILE_BYTES)).entries
        ]
    return tuple(sorted(found, key=lambda kept: (kept.entry.day, kept.entry.job or 0)))


def append_to(path: PurePosixPath, entries: Iterable[ArchivedEntry], job: int) -> tuple[Append, ...]:
    """What a change set adds to an archive for these entries; nothing for none."""
    text = archive_text(entries, job)
    return (Append(path, text),) if text else ()


def backup_of(role: Role, data: bytes, today: date) -> str | None:
    """A free name, relative to the role, for a backup of its memory file; None if an identical one is there."""
    for entry in _files(role, _BACKUP_PREFIX):
        same_size = entry.stat(follow_symlinks=False).st_size == len(data)
        if same_size and _BACKUP.fullmatch(entry.name) and read_plain(Path(entry.path), len(data)) == data:
            return None
    return free_backup(role, today)


def free_backup(role: Role, today: date) -> str:
    """A free name, relative to the role, for a backup of its memory file."""
    taken = {entry.name for entry in _files(role, _BACKUP_PREFIX)}
    number, name = 1, f"MEMORY-{today.isoformat()}.md"
    while name in taken:
        number += 1
        name = f"MEMORY-{today.isoformat()}-{number}.md"
    return f"{_DIRECTORY}/{name}"


def _taken_out(role: Role, today: date, entries: Iterable[ArchivedEntry], job: int, stem: str) -> tuple[Append, ...]:
    text = archive_text(entries, job)
    return (Append(_roomy(role, today, len(text), stem), text),) if text else ()


def _roomy(role: Role, today: date, adding: int, stem: str) -> PurePosixPath:
    return PurePosixPath(role.name) / archive_name(today.year, _sizes(role, stem), adding, stem=stem)


def _sizes(role: Role, stem: str) -> Mapping[str, int]:
    return {entry.name: entry.stat(follow_symlinks=False).st_size for entry in _files(role, f"{stem}-")}


def _files(role: Role, prefix: str) -> Iterator[os.DirEntry[str]]:
    """The plain files of a role's archive with names that begin so. A symlinked archive is none: nothing is there."""
    directory = role.path / _DIRECTORY
    if directory.is_symlink() or not directory.is_dir():
        return
    with os.scandir(directory) as entries:
        yield from (e for e in entries if e.name.startswith(prefix) and e.is_file(follow_symlinks=False))
