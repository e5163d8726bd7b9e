"""Who holds a lock file, and does anybody? Looks without waiting and without a heavy import, for `echod status`."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

READ_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Holder:
    """What the holder of a lock wrote into it.

    Attributes:
        pid: its process number.
        started: its start (`process.Process.started`), which tells it from a later process with the same number.
        version: its version of echod.
        since: Unix seconds of taking the lock, for people.
        since_monotonic: the same by the monotonic clock, for arithmetic.
    """

    pid: int
    started: str
    version: str
    since: float
    since_monotonic: float

    def encode(self) -> bytes:
        """The text of the lock file."""
        return json.dumps(asdict(self)).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class LockState:
    """Whether a lock is held now; `holder` may be the last one if it is not, None if nothing readable is there."""

    held: bool
    holder: Holder | None


def lock_state(path: Path) -> LockState:
    """Look at a lock file. It is never created, waited for or deleted; that it exists means nothing.

    For an instant this shares the lock itself, so whoever takes it must be willing to try twice.

    Raises:
        OSError: the file is there but cannot be opened; unreadable is not free.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return LockState(held=False, holder=None)
    try:
        holder = decode(os.pread(descriptor, READ_BYTES, 0))
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return LockState(held=True, holder=holder)
        return LockState(held=False, holder=holder)
    finally:
        os.close(descriptor)


def decode(data: bytes) -> Holder | None:
    """The holder written in a lock file, or None if it is not one of ours, torn or empty."""
    try:
        fields = json.loads(data)
        return Holder(
            pid=int(fields["pid"]),
            started=str(fields["started"]),
            version=str(fields["version"]),
            since=float(fields["since"]),
            since_monotonic=float(fields["since_monotonic"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
