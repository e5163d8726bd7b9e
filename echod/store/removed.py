"""Where texts stand that had to leave a memory file: reading the archives, and composing what is added to them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from echod.memory.policy.archive_text import REMOVED, archive_name
from echod.memory.redact import redact, redact_entry
from echod.store.desk import Desk
from echod.store.fsops import read_all
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
    parts = []
    for name in directory.names():
        if name.endswith(".md") and not name.startswith((".", _BACKUP)):
            fd = directory.open(name, os.O_RDONLY)
            try:
                parts.append(read_all(fd, MAX_FILE_BYTES).decode(errors="replace").replace("\r\n", "\n"))
            finally:
                os.close(fd)
    return Archived("\n".join(parts))


def leaving(desk: Desk, texts: Iterable[str], reason: str) -> tuple[tuple[str, bytes], ...]:
    """The append that keeps texts in `archive/removed-{year}.md`, or in the next once that is full, redacted.

    Nothing for no texts.
    """
    kept = [redact_entry(text).text for text in texts if text.strip()]
    if not kept:
        return ()
    day = datetime.fromtimestamp(desk.clock()).astimezone().date()
    composed = "".join(f"<!-- echod: {reason}, {day.isoformat()} -->\n{text.rstrip()}\n\n" for text in kept).encode()
    name = archive_name(day.year, _sizes(desk), len(composed), stem=REMOVED)
    return ((desk.ground.path_of(name), composed),)


def _sizes(desk: Desk) -> dict[str, int]:
    """Bytes of the archives that texts are added to, by name."""
    if desk.ground.home.stat("archive") is None:
        return {}
    directory, _ = desk.ground.place(desk.ground.path_of("archive/x"))
    names = (name for name in directory.names() if name.startswith(f"{REMOVED}-"))
    return {name: found.st_size for name in names if (found := directory.stat(name)) is not None}
