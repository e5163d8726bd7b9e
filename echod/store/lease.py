"""A read lease: the kernel's word that nobody has a file open for writing, and a bar on new writers while held.

Linux only (`F_SETLEASE`). Elsewhere, on file systems without leases, and on files of other users the answer is
`UNKNOWN`, and the caller must rely on the file having settled. Hold a lease for microseconds: a writer that opens
the file with O_NONBLOCK fails while it is held.
"""

from __future__ import annotations

import errno
import fcntl
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum


class Writers(Enum):
    """What the kernel says about open writers of a file."""

    NONE = "nobody has it open for writing"
    SOME = "somebody has it open for writing"
    UNKNOWN = "this file system cannot tell"


@contextmanager
def read_lease(fd: int) -> Iterator[Writers]:
    """Try to take a read lease on `fd` (opened read-only) for the length of the block."""
    answer = _take(fd)
    try:
        yield answer
    finally:
        if answer is Writers.NONE:
            _drop(fd)


def _take(fd: int) -> Writers:
    if not hasattr(fcntl, "F_SETLEASE"):
        return Writers.UNKNOWN
    try:
        # A writer's open breaks the lease with a signal. SIGIO would end the process; SIGURG is ignored by default,
        # and asking for it needs no handler, which only the main thread could install.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return Writers.SOME if error.errno == errno.EAGAIN else Writers.UNKNOWN
    return Writers.NONE


def _drop(fd: int) -> None:
    # The kernel takes a lease away after lease-break-time (we were suspended); then there is none to give back.
    with suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
