"""Reading files that others made: never waiting for a FIFO, never reading a device, never more than a bound.

What stands at a path was looked at before, perhaps, and may be something else by now; so it is looked at again once it
is open. Knows nothing of what the files hold.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_plain(path: Path) -> BinaryIO:
    """A plain file, opened for reading; a link is followed.

    Raises:
        OSError: it is missing, may not be read, or is no plain file.
    """
    # O_NONBLOCK: opening a FIFO that nobody writes to would wait for ever; for a plain file it does nothing.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a plain file", str(path))


def read_plain(path: Path, limit: int) -> bytes:
    """All of a plain file of at most `limit` bytes.

    Raises:
        OSError: as `open_plain`, or it is larger.
    """
    with open_plain(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, "too large", str(path))
    return data
