"""The two locks: one held for the daemon's life, one for the length of a job by whoever runs it.

Both are advisory locks that the kernel releases with their process, so a stale file never needs a hand. The files
are never deleted: a second process would lock the new file while the first still holds the old one. Whoever holds
one can ask whether the file is still the one it locked.

Who holds a lock file, and does anybody? Looks without waiting and without a heavy import, for `echod status`.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from echod import __version__
from echod.errors import EchodError, StateError
from echod.paths import PRIVATE_FILE_MODE
from echod.runtime.process import find_process

MAX_OWNER_BYTES = 4096


@dataclass(frozen=True, slots=True)
class LockOwner:
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


def this_process() -> LockOwner:
    """Return this process as the owner of the locks that it takes.

    Raises:
        StateError: the system does not report when this process started.
    """
    process = find_process(os.getpid())
    if process is None:
        raise StateError("The system does not report when this process started. Is /proc mounted?")
    return LockOwner(process.pid, process.started, __version__, time.time(), time.monotonic())


class LockState(NamedTuple):
    """Whether a lock is held now; `owner` may be the last one if it is not, None if nothing readable is there."""

    held: bool
    owner: LockOwner | None


def read_lock_state(path: Path) -> LockState:
    """Look at a lock file. It is never created, waited for or deleted; that it exists means nothing.

    For an instant this shares the lock itself, so whoever takes it must be willing to try twice.

    Raises:
        OSError: the file is there but cannot be opened; unreadable is not free.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return LockState(held=False, owner=None)
    try:
        owner = parse_lock_owner(os.pread(descriptor, MAX_OWNER_BYTES, 0))
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return LockState(held=True, owner=owner)
        return LockState(held=False, owner=owner)
    finally:
        os.close(descriptor)


def parse_lock_owner(data: bytes) -> LockOwner | None:
    """The holder written in a lock file, or None if it is not one of ours, torn or empty."""
    try:
        fields = json.loads(data)
        return LockOwner(
            pid=int(fields["pid"]),
            started=str(fields["started"]),
            version=str(fields["version"]),
            since=float(fields["since"]),
            since_monotonic=float(fields["since_monotonic"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


DAEMON_LOCK_TIMEOUT_SECONDS = 1.0
"""How long a starting daemon waits for its lock; `holder.lock_state` may hold it for an instant."""


class LockHeldError(EchodError):
    """Somebody else holds the lock. `owner` is who, if they could be read."""

    def __init__(self, sentence: str, owner: LockOwner | None) -> None:
        super().__init__(sentence)
        self.owner = owner


class AlreadyRunningError(LockHeldError):
    """Another daemon of this user runs."""


class WorkerBusyError(LockHeldError):
    """A job is being done by somebody else, and the time to wait is over."""


class HeldLock:
    """A lock that this process holds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def is_current(self) -> bool:
        """Whether the file at the path is still the one that was locked; if not, another may hold the new one."""
        if self._descriptor is None:
            return False
        try:
            ours, on_disk = os.fstat(self._descriptor), self._path.lstat()
        except OSError:
            return False
        return (ours.st_dev, ours.st_ino) == (on_disk.st_dev, on_disk.st_ino)


@contextmanager
def daemon_lock(path: Path, owner: LockOwner, seconds: float = DAEMON_LOCK_TIMEOUT_SECONDS) -> Iterator[HeldLock]:
    """Hold the lock of the daemon's life.

    Raises:
        AlreadyRunningError: another daemon holds it.
        StateError: it cannot be taken at all (no directory, no permission, no locks on this file system).
    """
    with _acquire(path, owner, seconds, _never_cancelled) as held_lock:
        if held_lock is None:
            current_owner = _read_owner(path)
            raise AlreadyRunningError(f"echod is already running{_describe_owner(current_owner)}.", current_owner)
        yield held_lock


@contextmanager
def worker_lock(
    path: Path, owner: LockOwner, seconds: float, cancelled: Callable[[], bool] | None = None
) -> Iterator[HeldLock]:
    """Hold the lock of whoever runs a job. Taken and released in the same thread, and never twice.

    Args:
        path: `Paths.worker_lock`.
        owner: who takes it, written into the file.
        seconds: how long to wait for it at most.
        cancelled: asked while waiting; True ends the wait, as its deadline does.

    Raises:
        WorkerBusyError: somebody else held it all the time.
        StateError: it cannot be taken at all.
    """
    with _acquire(path, owner, seconds, cancelled or _never_cancelled) as held_lock:
        if held_lock is None:
            current_owner = _read_owner(path)
            raise WorkerBusyError(
                f"A job is running{_describe_owner(current_owner)}; try again when it is done.", current_owner
            )
        yield held_lock


@contextmanager
def _acquire(path: Path, owner: LockOwner, seconds: float, cancelled: Callable[[], bool]) -> Iterator[HeldLock | None]:
    from filelock import FileLock, Timeout  # noqa: PLC0415  slow to load, and readers of a lock need none

    held_lock = HeldLock(path)

    def write_owner(descriptor: int) -> None:
        text = owner.encode()
        os.pwrite(descriptor, text, 0)  # over the old text, then cut: a reader never meets an empty file
        os.ftruncate(descriptor, len(text))
        held_lock._descriptor = descriptor  # noqa: SLF001  (ours; borrowed from the lock until it is released)

    lock = FileLock(
        path,
        mode=PRIVATE_FILE_MODE,
        thread_local=False,  # still_held is asked by other threads
        preserve_lock_file=True,
        on_acquired=write_owner,
    )
    try:
        path.parent.stat()  # the lock would make a missing directory itself, and not a private one
        lock.acquire(timeout=seconds, cancel_check=cancelled)
    except Timeout:
        yield None
        return
    except OSError as error:
        raise StateError(
            f"The lock file {path} cannot be used ({error.strerror}); check the directory's permissions and that it "
            "is on a local file system, or set ECHOD_STATE_DIR to one that is."
        ) from error
    try:
        yield held_lock
    finally:
        held_lock._descriptor = None  # noqa: SLF001
        lock.release()


def _read_owner(path: Path) -> LockOwner | None:
    try:
        return read_lock_state(path).owner
    except OSError:
        return None


def _describe_owner(owner: LockOwner | None) -> str:
    if owner is None:
        return ""
    since = datetime.fromtimestamp(owner.since).astimezone()
    return f" (process {owner.pid}, version {owner.version}, since {since:%Y-%m-%d %H:%M})"


def _never_cancelled() -> bool:
    return False
