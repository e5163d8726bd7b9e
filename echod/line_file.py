"""A small private text file of lines that people may edit too. Knows nothing of what the lines mean.

Readers need no lock: the file is only ever replaced as a whole.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from echod.errors import StateError, reason_of
from echod.paths import PRIVATE_DIR

LOCK_SECONDS: Final = 10.0


class LineFile:
    """Lines as a person sees them: whatever bytes a path may have, without the line ends."""

    def __init__(self, path: Path, *, lock_seconds: float = LOCK_SECONDS) -> None:
        """`lock_seconds` is how long a change waits for another process that is changing the same file."""
        self.path = path
        self._lock_seconds = lock_seconds

    def read(self) -> tuple[str, ...]:
        """Every line in order; none if there is no file.

        Raises:
            StateError: the file is there and cannot be read; unreadable is not empty.
        """
        try:
            text = os.fsdecode(self.path.read_bytes())
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise _unusable(self.path, "read", error) from error
        return tuple(line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")) if text else ()

    def changed_at(self) -> float | None:
        """When the file was last written (Unix seconds); None if it cannot be seen."""
        try:
            return self.path.stat().st_mtime
        except OSError:
            return None

    @contextlib.contextmanager
    def changing(self) -> Iterator[list[str]]:
        """The lines, to be changed in place; written when the block ends without an exception, if they differ.

        Raises:
            StateError: the file cannot be read or written, or another process keeps it locked.
        """
        from filelock import FileLock, Timeout  # noqa: PLC0415  slow to load, and readers need none

        try:
            self.path.parent.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
            lock = FileLock(self.path.with_name(f"{self.path.name}.lock"), timeout=self._lock_seconds, mode=0o600)
            with lock:
                before = self.read()
                lines = list(before)
                yield lines
                if tuple(lines) != before:
                    _replace(self.path, os.fsencode("".join(f"{line}\n" for line in lines)))
        except Timeout as error:
            raise StateError(f"{self.path} is being changed by another process; try again in a moment.") from error
        except OSError as error:
            raise _unusable(self.path, "written", error) from error


def _replace(path: Path, content: bytes) -> None:
    """The whole new content or the whole old one, whenever the power goes."""
    target = Path(os.path.realpath(path))  # a link to a person's own place stays a link
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)  # mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    directory = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot sync a directory
            raise
    finally:
        os.close(directory)


def _unusable(path: Path, what: str, error: OSError) -> StateError:
    return StateError(f"{path} cannot be {what}: {reason_of(error)}; check its permissions and the disk.")
