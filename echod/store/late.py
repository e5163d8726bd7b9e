"""Files that were displaced or claimed, as they are now: somebody may still hold them open and write."""

from __future__ import annotations

import os
from dataclasses import dataclass

from echod.store.changeset import digest
from echod.store.desk import Desk
from echod.store.faults import told
from echod.store.fsops import read_all
from echod.store.lease import Writers, read_lease
from echod.store.records import Record
from echod.store.snapshot import MAX_FILE_BYTES


@dataclass(frozen=True, slots=True)
class Late:
    """A file as it is now: `data` is None where it is gone; `final`: nobody can write to it, as far as can be known."""

    data: bytes | None
    final: bool


def followed_files(record: Record) -> list[tuple[str, str, str]]:
    """Displaced and claimed files: the path they had, the name they have, what is merged of them."""
    displaced = [(w.path, w.stage, w.absorbed) for w in record.writes]
    return displaced + [(c.path, c.claim, c.absorbed) for c in record.consumes]


def has_late(desk: Desk, record: Record) -> bool:
    """Whether something came late that can be merged now."""
    late = [(late_bytes(desk, path, name), absorbed) for path, name, absorbed in followed_files(record)]
    return any(a.data is not None and a.final and digest(a.data) != absorbed for a, absorbed in late)


def late_bytes(desk: Desk, path: str, name: str) -> Late:
    """Look at a displaced or claimed file that lies under `name` beside `path` (relative to the store)."""
    with told("look at the replaced file beside", desk.ground.role.store.root / path):
        directory, _ = desk.ground.place(path)
        try:
            fd = directory.open(name, os.O_RDONLY)
        except FileNotFoundError:
            return Late(None, final=True)
        try:
            with read_lease(fd) as writers:
                data = read_all(fd, MAX_FILE_BYTES)
                stat = os.fstat(fd)
        finally:
            os.close(fd)
    if len(data) > MAX_FILE_BYTES:
        return Late(data[:0], final=False)  # too big to be merged: it stays for a person to look at
    still = desk.clock() - max(stat.st_mtime, stat.st_ctime) >= desk.limits.settle_seconds
    return Late(data, final=writers is Writers.NONE or (writers is Writers.UNKNOWN and still))
