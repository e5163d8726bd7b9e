"""Record which entries were shown in a session: one file for each session, one line of JSON for each entry.

The file is locked while a hook decides, since an agent may run several calls at the same time. A hook that cannot have
the lock at once, or cannot write the line, shows nothing: an entry is never shown twice.
"""

from __future__ import annotations

import os
import time

from echod.hooks import recall_settings

TYPE_CHECKING = False  # typing itself takes longer to import than a hook may run
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

DIRECTORY = "recall"
MAX_SESSIONS = 400
MAX_FILE_BYTES = 64 * 1024
_MODE_FILE, _MODE_DIRECTORY = 0o600, 0o700
_LOCK_ATTEMPTS, _LOCK_SECONDS = 10, 0.005
_MAX_NAME = 100
_MAX_TITLE = 200

OfferedRow = tuple[str, str, str, str, str, str]
"""The id, the title, the store and the project of an entry, the event, and the reason."""


class SessionOffers:
    """The entries that were shown in a session. `ids` are theirs. Use it as a context: the lock ends with it.

    Raises:
        OSError: the file cannot be opened, locked or written, or is full.
    """

    def __init__(self, state: str, session: str) -> None:
        self.ids: frozenset[str] = frozenset()
        self._directory = os.path.join(state, DIRECTORY)
        self._path = os.path.join(self._directory, session_file(session))
        self._descriptor = -1

    def __enter__(self) -> Self:
        import fcntl

        if not os.path.isdir(self._directory):
            os.mkdir(self._directory, _MODE_DIRECTORY)
        if not os.path.exists(self._path):
            _delete_oldest(self._directory)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(self._path, flags, _MODE_FILE)
        for attempt in range(_LOCK_ATTEMPTS):
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if attempt == _LOCK_ATTEMPTS - 1:
                    os.close(self._descriptor)
                    raise
                time.sleep(_LOCK_SECONDS)
        data = os.read(self._descriptor, MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            os.close(self._descriptor)
            raise OSError(self._path)
        self.ids = frozenset(_line_id(line) for line in data.decode("utf-8", "replace").split("\n"))
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def record(self, rows: Iterable[OfferedRow]) -> None:
        """Append the entries that are about to be shown."""
        now = time.time()
        lines = []
        for identity, title, store, project, event, reason in rows:
            values = {
                "id": identity, "title": title[:_MAX_TITLE], "store": store, "project": project, "event": event,
                "reason": reason[:_MAX_TITLE],
            }  # fmt: skip
            fields = ",".join(f'"{name}":{recall_settings.quote_json(value)}' for name, value in values.items())
            lines.append(f'{{{fields},"at":{now:.3f}}}\n')
        data = "".join(lines).encode("ascii", "replace")
        if os.write(self._descriptor, data) != len(data):
            raise OSError(self._path)


def session_file(session: str) -> str:
    """Return the name of a session's file. Characters that a name may not have become their codes."""
    name = "".join([c if c.isascii() and (c.isalnum() or c in "-_") else f"%{ord(c):x}" for c in session])
    return name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}%{len(name)}"


def _line_id(line: str) -> str:
    """Return the id in a line, which begins with it."""
    return line[7 : line.find('"', 7)] if line.startswith('{"id":"') else ""


def _delete_oldest(directory: str) -> None:
    names = os.listdir(directory)
    if len(names) < MAX_SESSIONS:
        return
    paths = [os.path.join(directory, name) for name in names]
    for path in sorted(paths, key=lambda p: os.lstat(p).st_mtime_ns)[: MAX_SESSIONS // 4]:
        os.unlink(path)
