"""Read the archive of a role, and plan appends and backups to it. Not a job kind, but shared by several."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from echod.files import read_regular
from echod.memory import MAX_FILE_BYTES, MEMORY_FILE
from echod.memory.policy import ArchivedEntry, read_archive, render_archived_entries, select_archive_file
from echod.memory.policy.archive import PRUNED_STEM, REMOVED_STEM
from echod.memory.redact import redact_entry
from echod.store.changes import Append
from echod.store.errors import as_store_error
from echod.store.layout import Role

_BACKUP_NAME = re.compile(r"MEMORY-(?P<day>\d{4}-\d{2}-\d{2})(?:-\d+)?\.md")
_ARCHIVE_DIRECTORY = "archive"
_BACKUP_PREFIX = "MEMORY-"


class ArchivedCopy(NamedTuple):
    """An archived entry, and the file that contains it, relative to the role."""

    file: str
    entry: ArchivedEntry


def pruned_archive_sizes(role: Role) -> Mapping[str, int]:
    """Return the sizes in bytes of the archive files for pruned entries, by name."""
    return _archive_sizes(role, PRUNED_STEM)


def removed_archive_sizes(role: Role) -> Mapping[str, int]:
    """Return the sizes in bytes of the archive files for entries that the user removed, by name."""
    return _archive_sizes(role, REMOVED_STEM)


def append_pruned(role: Role, today: date, entries: Iterable[ArchivedEntry], job_id: int) -> tuple[Append, ...]:
    """Return the append to the archive for entries that a rule removes; empty for no entries."""
    return _append(role, today, render_archived_entries(entries, job_id), PRUNED_STEM)


def append_removed(role: Role, today: date, entries: Iterable[ArchivedEntry], job_id: int) -> tuple[Append, ...]:
    """Return the append to the archive for entries that the user removes; empty for no entries."""
    return _append(role, today, render_archived_entries(entries, job_id), REMOVED_STEM)


def append_short_form(role: Role, text: str | None, today: date) -> tuple[Append, ...]:
    """Return the append to the archive for the short form of an entry whose full text is restored."""
    if text is None:
        return ()
    data = f"\n<!-- echod: gave way to its full text, {today.isoformat()} -->\n{redact_entry(text).text.rstrip()}\n"
    return _append(role, today, data.encode(), REMOVED_STEM)


def list_archived_entries(role: Role) -> tuple[ArchivedCopy, ...]:
    """List every entry in the archive of a role, oldest first. Backups are excluded.

    Raises:
        StoreError: the archive cannot be read.
    """
    with as_store_error("read the archive of", role.path):
        names = [
            e.name for e in _archive_files(role, "") if e.name.endswith(".md") and not e.name.startswith(_BACKUP_PREFIX)
        ]
        copies = [
            ArchivedCopy(f"{_ARCHIVE_DIRECTORY}/{name}", entry)
            for name in sorted(names, key=lambda name: (len(name), name))
            for entry in read_archive(read_regular(role.path / _ARCHIVE_DIRECTORY / name, MAX_FILE_BYTES)).entries
        ]
    return tuple(sorted(copies, key=lambda copy: (copy.entry.day, copy.entry.job or 0)))


class MemoryBackup(NamedTuple):
    """A memory file as it was on a day before a change."""

    day: date
    data: bytes


def read_backups(role: Role) -> tuple[MemoryBackup, ...]:
    """Return the backups of a role's memory file, oldest first.

    Raises:
        StoreError: one of them cannot be read.
    """
    with as_store_error("read the archive of", role.path):
        backups = [
            MemoryBackup(day, read_regular(Path(entry.path), MAX_FILE_BYTES))
            for entry in sorted(_archive_files(role, _BACKUP_PREFIX), key=lambda entry: (len(entry.name), entry.name))
            if (match := _BACKUP_NAME.fullmatch(entry.name)) and (day := _to_day(match["day"])) is not None
        ]
    return tuple(sorted(backups, key=lambda backup: backup.day))


def _to_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def append_to_archive(path: PurePosixPath, entries: Iterable[ArchivedEntry], job_id: int) -> tuple[Append, ...]:
    """Return the append of these entries to an archive file; empty for no entries."""
    text = render_archived_entries(entries, job_id)
    return (Append(path, text),) if text else ()


def backup_name(role: Role, data: bytes, today: date) -> str | None:
    """Return an unused name, relative to the role, for a backup of its memory file; None if an identical one exists."""
    for entry in _archive_files(role, _BACKUP_PREFIX):
        same_size = entry.stat(follow_symlinks=False).st_size == len(data)
        if same_size and _BACKUP_NAME.fullmatch(entry.name) and read_regular(Path(entry.path), len(data)) == data:
            return None
    return free_backup_name(role, today)


def free_backup_name(role: Role, today: date, file: str = MEMORY_FILE) -> str:
    """Return an unused name, relative to the role, for a backup of its memory file or another `file`."""
    stem = file.removesuffix(".md")
    used = {entry.name for entry in _archive_files(role, f"{stem}-")}
    number, name = 1, f"{stem}-{today.isoformat()}.md"
    while name in used:
        number += 1
        name = f"{stem}-{today.isoformat()}-{number}.md"
    return f"{_ARCHIVE_DIRECTORY}/{name}"


def _append(role: Role, today: date, text: bytes, stem: str) -> tuple[Append, ...]:
    """Return the append of a text to an archive file that has room for it; empty for no text."""
    if not text:
        return ()
    archive = select_archive_file(today.year, _archive_sizes(role, stem), len(text), stem=stem)
    return (Append(PurePosixPath(role.name) / archive, text),)


def _archive_sizes(role: Role, stem: str) -> Mapping[str, int]:
    return {entry.name: entry.stat(follow_symlinks=False).st_size for entry in _archive_files(role, f"{stem}-")}


def _archive_files(role: Role, prefix: str) -> Iterator[os.DirEntry[str]]:
    """Yield the regular files of a role's archive with this prefix. A symlinked archive counts as empty."""
    directory = role.path / _ARCHIVE_DIRECTORY
    if directory.is_symlink() or not directory.is_dir():
        return
    with os.scandir(directory) as entries:
        yield from (e for e in entries if e.name.startswith(prefix) and e.is_file(follow_symlinks=False))
