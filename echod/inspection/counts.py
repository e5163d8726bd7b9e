"""What was counted in memory and knowledge files. Kept as long as a file is the same, and for the next process too.

Looking at a hundred projects must cost little, so a file is read and taken apart only when it is another than before.
"""

from __future__ import annotations

import json
import os
from dataclasses import astuple
from pathlib import Path
from stat import S_ISREG

from echod import __version__
from echod.files import Stamp, stamp_of
from echod.jobs.count import Count
from echod.memory.limits import SIZE_LIMIT
from echod.plain_file import read_plain

_FORM = f"{__version__}/1"
"""Who counts, and what; what another version left is counted anew."""


class Counted:
    """Counts by file; one for a process, owned by one thread."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Stamp, Count]] = {}
        self._asked: set[str] = set()
        self.has_news = False

    @classmethod
    def from_json(cls, text: str) -> Counted:
        """With what `to_json` of an earlier process said; with nothing where that cannot be understood."""
        made = cls()
        try:
            left = json.loads(text)
            if left["form"] == _FORM:
                made._known = {
                    file: ((inode, size, mtime, ctime), Count(*count))
                    for file, ((inode, size, mtime, ctime), count) in left["files"].items()
                }
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()
        return made

    def to_json(self) -> str:
        """What is known of the files that this process asked for; there is no news then."""
        files = {file: known for file, known in self._known.items() if file in self._asked}
        self.has_news = False
        left = {file: (stamp, astuple(count)) for file, (stamp, count) in files.items()}
        return json.dumps({"form": _FORM, "files": left}, separators=(",", ":"))

    def of(self, file: Path) -> Count:
        """What is in a memory or knowledge file; nothing where there is none."""
        return self.at(file)[1]

    def at(self, file: Path) -> tuple[Stamp | None, Count]:
        """The same, with the stamp of the file that was counted; None for one that is left alone, or is not there."""
        name = str(file)
        self._asked.add(name)
        try:
            status = os.lstat(name)
        except FileNotFoundError:
            return None, Count(0)
        except OSError as error:
            return None, Count(None, problem=f"{file.name} cannot be read: {error.strerror}.")
        if not S_ISREG(status.st_mode):
            return None, Count(None, problem=f"{file.name} is not a plain file; echod leaves it alone.")
        if status.st_size > SIZE_LIMIT:
            return None, Count(None, problem=f"{file.name} has {status.st_size:,} bytes, more than echod reads.")
        stamp = stamp_of(status)
        known = self._known.get(name)
        if known is not None and known[0] == stamp:
            return known
        try:
            data = read_plain(file, SIZE_LIMIT)
        except OSError as error:  # also for a moment only, so this is not kept
            return None, Count(None, problem=f"{file.name} cannot be read: {error.strerror}.")
        known = self._known[name] = (stamp, _count(file.name, data))
        self.has_news = True
        return known


def _count(name: str, data: bytes) -> Count:
    from echod.jobs.counting import count  # noqa: PLC0415  mostly nothing is counted, and it takes long to load

    return count(name, data)
