"""The archives of a role as the policies' jobs see them: how full they are, and which backup is there already."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path, PurePosixPath

from echod.memory.policy import ArchivedEntry, archive_text
from echod.store.changeset import Append
from echod.store.layout import Role

_BACKUP = re.compile(r"MEMORY-\d{4}-\d{2}-\d{2}(-\d+)?\.md")
_DIRECTORY = "archive"


def pruned_sizes(role: Role) -> Mapping[str, int]:
    """Bytes of the files in the role's archive that pruned entries are appended to, by name."""
    return {entry.name: entry.stat(follow_symlinks=False).st_size for entry in _files(role, "pruned-")}


def append_to(path: PurePosixPath, entries: Iterable[ArchivedEntry], job: int) -> tuple[Append, ...]:
    """What a change set adds to an archive for these entries; nothing for none."""
    text = archive_text(entries, job)
    return (Append(path, text),) if text else ()


def backup_of(role: Role, data: bytes, today: date) -> str | None:
    """A free name, relative to the role, for a backup of its memory file; None if an identical one is there."""
    taken = set()
    for entry in _files(role, "MEMORY-"):
        taken.add(entry.name)
        same_size = entry.stat(follow_symlinks=False).st_size == len(data)
        if same_size and _BACKUP.fullmatch(entry.name) and Path(entry.path).read_bytes() == data:
            return None
    number, name = 1, f"MEMORY-{today.isoformat()}.md"
    while name in taken:
        number += 1
        name = f"MEMORY-{today.isoformat()}-{number}.md"
    return f"{_DIRECTORY}/{name}"


def _files(role: Role, prefix: str) -> Iterator[os.DirEntry[str]]:
    """The plain files of a role's archive with names that begin so. A symlinked archive is none: nothing is there."""
    directory = role.path / _DIRECTORY
    if directory.is_symlink() or not directory.is_dir():
        return
    with os.scandir(directory) as entries:
        yield from (e for e in entries if e.name.startswith(prefix) and e.is_file(follow_symlinks=False))
