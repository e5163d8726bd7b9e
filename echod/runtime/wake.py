"""Wake the daemon from a command by writing a file in the runtime directory.

The daemon sees the write through its watcher or, where nothing is watched, by comparing the file now and then. A
module of its own because it is a protocol of its own: commands write the file, and only the daemon reads it.
"""

from __future__ import annotations

from pathlib import Path

from echod.files import read_regular, write_runtime_file

_MAX_BYTES = 4096


def write_wake_file(path: Path, token: str) -> None:
    """Wake the daemon, if one is running.

    Args:
        path: the wake file (`Paths.wake_file`).
        token: any text that was not written there before, such as the process id and the time in nanoseconds.

    Raises:
        OSError: the runtime directory cannot be created or written.
    """
    # Replaced, not only touched: the daemon listens to no event that reports a changed time alone.
    write_runtime_file(path, token)


class WakeFile:
    """The daemon's side. A write from before its start does not wake it, because it inspects everything at start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last_content = self._read()

    def was_written(self) -> bool:
        """Return whether a command wrote the file since the last call. A missing file counts as not written."""
        content = self._read()
        if content is None or content == self._last_content:
            return False
        self._last_content = content
        return True

    def _read(self) -> tuple[int, bytes] | None:
        # Compares the content too: two writes within one tick of the file system's clock have the same time.
        try:
            return self._path.stat().st_mtime_ns, read_regular(self._path, _MAX_BYTES)
        except OSError:
            return None
