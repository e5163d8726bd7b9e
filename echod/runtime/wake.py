"""How a command says to the daemon "there is work": it writes a file in the runtime directory.

The daemon sees that through its watcher, or, where nothing is watched, by comparing the file now and then.
"""

from __future__ import annotations

import os
from pathlib import Path

from echod.paths import PRIVATE_DIR_MODE, PRIVATE_FILE_MODE


def write_wake_file(path: Path, token: str) -> None:
    """Wake the daemon, if one runs.

    Args:
        path: the wake file (`Paths.wake`).
        token: anything not written there before, as the process id and the time in nanoseconds.

    Raises:
        OSError: the runtime directory cannot be made or written.
    """
    path.parent.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)
    # Written and closed, not only touched: a changed time alone is no event that the daemon listens to.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE_MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(token)


class WakeFile:
    """The daemon's side. What was written before it started does not wake it: it looks at everything then."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last_content = self._read()

    def was_written(self) -> bool:
        """Whether a command wrote the file since the last call. A missing file wakes nobody."""
        content = self._read()
        if content is None or content == self._last_content:
            return False
        self._last_content = content
        return True

    def _read(self) -> tuple[int, bytes] | None:
        # The content too: two writes within one tick of the file system's clock have the same time.
        try:
            return self._path.stat().st_mtime_ns, self._path.read_bytes()[:256]
        except OSError:
            return None
