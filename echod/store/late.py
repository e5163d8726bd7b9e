"""Files that were displaced or claimed, as they are now: somebody may still hold them open and write."""

from __future__ import annotations

import os
from dataclasses import dataclass

from echod.store.commit.context import Desk
from echod.store.digests import digest
from echod.store.errors import told
from echod.store.fs import read_all
from echod.store.journal.records import Record
from echod.store.lease import Writers, read_lease
from echod.store.snapshot import MAX_FILE_BYTES


@dataclass(frozen=True, slots=True)
class Late:
    """A file as it is now.

    Attributes:
        data: its content; None where it is gone.
        final: nobody can write to it, as far as can be known.
        certain: the kernel says so.
    """

    data: bytes | None
    final: bool
    certain: bool

    def holds(self, absorbed: str) -> bool:
        """Whether there is nothing new in it: `absorbed` is the digest of what is merged of it."""
        return self.data is None or digest(self.data) == absorbed


def followed_files(record: Record) -> list[tuple[str, str, str]]:
    """Displaced and claimed files: the path they had, the name they have, what is merged of them."""
    displaced = [(w.path, w.stage, w.absorbed) for w in record.writes]
    return displaced + [(c.path, c.claim, c.absorbed) for c in record.consumes]


def has_late(desk: Desk, record: Record) -> bool:
    """Whether something came late that can be merged now.

    Where it is certain that nothing ever will, the record is not looked at again until it is closed: nobody has a
    descriptor, and nobody but us knows the names.
    """
    if (record.seq, record.at) in desk.journal.settled:
        return False
    settled = True
    for path, name, absorbed in followed_files(record):
        late = late_bytes(desk, path, name)
        if late.final and not late.holds(absorbed):
            return True
        settled = settled and late.certain and late.holds(absorbed)
    if settled:
        desk.journal.settled.add((record.seq, record.at))
    return False


def late_bytes(desk: Desk, path: str, name: str) -> Late:
    """Look at a displaced or claimed file that lies under `name` beside `path` (relative to the store)."""
    with told("look at the replaced file beside", desk.ground.role.store.root / path):
        directory, _ = desk.ground.place(path)
        try:
            fd = directory.open(name, os.O_RDONLY)
        except FileNotFoundError:
            return Late(None, final=True, certain=True)
        try:
            with read_lease(fd) as writers:
                data = read_all(fd, MAX_FILE_BYTES)
                stat = os.fstat(fd)
        finally:
            os.close(fd)
    if len(data) > MAX_FILE_BYTES:
        return Late(data[:0], final=False, certain=False)  # too big to be merged: it stays for a person to look at
    still = desk.clock() - max(stat.st_mtime, stat.st_ctime) >= desk.limits.settle_seconds
    certain = writers is Writers.NONE
    return Late(data, final=certain or (writers is Writers.UNKNOWN and still), certain=certain)
