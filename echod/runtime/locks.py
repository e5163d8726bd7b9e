"""Hold and inspect the two locks: the daemon's, for its whole life, and the worker's, for the length of one job.

Both are advisory locks that the kernel releases with their process, so a stale file never needs manual removal. The
files are never deleted, because a second process would then lock the new file while the first still holds the old
one. The holder of a lock can check whether the file is still the one it locked.

Reading who holds a lock never waits and loads nothing heavy, because `echod status` does it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from echod import __version__
from echod.clock import local_datetime
from echod.errors import GARBLED_ERRORS, EchodError, StateError
from echod.lazy import lazy_imports
from echod.paths import PRIVATE_FILE_MODE, Paths
from echod.runtime.system import find_process

with lazy_imports(__name__):
    import filelock

MAX_OWNER_BYTES = 4096
_MAX_PID = (1 << 31) - 1

DAEMON_LOCK_TIMEOUT_SECONDS = 1.0
"""How long a starting daemon waits for its lock. `read_lock_state` may hold it for an instant."""


class LockHeldError(EchodError):
    """Another process holds the lock. `owner` is that process, or None if it could not be read."""

    def __init__(self, sentence: str, owner: LockOwner | None) -> None:
        super().__init__(sentence)
        self.owner = owner


class AlreadyRunningError(LockHeldError):
    """Another daemon of this user is running."""


class WorkerBusyError(LockHeldError):
    """Another process ran jobs until the time to wait was over."""


class LockOwner(NamedTuple):
    """The content of a lock file: the process that holds the lock.

    `started` (`RunningProcess.started`) distinguishes it from a later process with the same number. It took the lock
    at `since` (Unix seconds, for display), and at `since_monotonic` by the clock for arithmetic. `runtime` is the
    runtime directory of a daemon, and "" for other owners.
    """

    pid: int
    started: str
    version: str
    since: float
    since_monotonic: float
    runtime: str = ""

    def encode(self) -> bytes:
        """Return the content of the lock file."""
        return json.dumps(self._asdict()).encode() + b"\n"


def this_process() -> LockOwner:
    """Return this process as the owner of a lock that it takes now.

    Raises:
        StateError: the start of this process cannot be read.
    """
    process = find_process(os.getpid())
    if process is None:
        raise StateError("The system does not report when this process started. /proc may not be mounted.")
    return LockOwner(process.pid, process.started, __version__, time.time(), time.monotonic())


class LockState(NamedTuple):
    """The state of a lock. `owner` is the last owner if it is not held; None if the file contains nothing readable."""

    held: bool
    owner: LockOwner | None


def read_lock_state(path: Path) -> LockState:
    """Return the state of a lock file, without creating it, waiting for it or deleting it.

    That the file exists means nothing. For an instant this function shares the lock itself, so a process that takes
    the lock must try twice.

    Raises:
        OSError: the file exists but cannot be opened, which does not mean that the lock is free.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return LockState(held=False, owner=None)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        owner = parse_lock_owner(os.pread(descriptor, MAX_OWNER_BYTES, 0))
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return LockState(held=True, owner=owner)
        return LockState(held=False, owner=owner)
    finally:
        os.close(descriptor)


def parse_lock_owner(data: bytes) -> LockOwner | None:
    """Return the owner from the content of a lock file; None if it is empty, torn or not in our format."""
    try:
        fields = json.loads(data)
        owner = LockOwner(
            pid=int(fields["pid"]),
            started=str(fields["started"]),
            version=str(fields["version"]),
            since=float(fields["since"]),
            since_monotonic=float(fields["since_monotonic"]),
            runtime=str(fields.get("runtime", "")),
        )
    except GARBLED_ERRORS:
        return None
    return owner if 0 < owner.pid <= _MAX_PID and math.isfinite(owner.since + owner.since_monotonic) else None


def paths_of_running_daemon(paths: Paths) -> Paths:
    """Return the paths with the runtime directory of the running daemon, if one runs.

    The environment of the session may differ from that of the service, and then its own default would be a directory in
    which nothing is.
    """
    try:
        state = read_lock_state(paths.daemon_lock)
    except OSError:
        return paths  # reported by each command that reads the lock
    if not state.held or state.owner is None or not state.owner.runtime:
        return paths
    return paths._replace(runtime=Path(state.owner.runtime))


class HeldLock:
    """A lock that this process holds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def is_current(self) -> bool:
        """Return whether the path still leads to the locked file; if not, another process may hold the new one."""
        if self._descriptor is None:
            return False
        try:
            ours, on_disk = os.fstat(self._descriptor), self._path.lstat()
        except OSError:
            return False
        return (ours.st_dev, ours.st_ino) == (on_disk.st_dev, on_disk.st_ino)


@contextmanager
def daemon_lock(path: Path, owner: LockOwner, seconds: float = DAEMON_LOCK_TIMEOUT_SECONDS) -> Iterator[HeldLock]:
    """Hold the daemon's lock.

    Raises:
        AlreadyRunningError: another daemon holds it.
        StateError: it cannot be taken (no directory, no permission, no locks on this file system).
    """
    with _acquire(path, owner, seconds) as held_lock:
        if held_lock is None:
            current = _read_owner(path)
            raise AlreadyRunningError(f"echod is already running{_describe_owner(current)}.", current)
        yield held_lock


@contextmanager
def worker_lock(
    path: Path, owner: LockOwner, seconds: float, cancelled: Callable[[], bool] | None = None
) -> Iterator[HeldLock]:
    """Hold the lock that allows running a job. Take and release it in the same thread, and never twice.

    `cancelled` is called while waiting. If it returns True, the wait ends before its deadline.

    Raises:
        WorkerBusyError: another process held it for all of that time.
        StateError: it cannot be taken.
    """
    with _acquire(path, owner, seconds, cancelled) as held_lock:
        if held_lock is None:
            current = _read_owner(path)
            raise WorkerBusyError(
                f"A job is running{_describe_owner(current)}. Try again when it is finished.", current
            )
        yield held_lock


@contextmanager
def _acquire(
    path: Path, owner: LockOwner, seconds: float, cancelled: Callable[[], bool] | None = None
) -> Iterator[HeldLock | None]:
    held_lock = HeldLock(path)

    def write_owner(descriptor: int) -> None:
        text = owner.encode()
        os.pwrite(descriptor, text, 0)  # over the old text, then cut: a reader never finds an empty file
        os.ftruncate(descriptor, len(text))
        held_lock._descriptor = descriptor  # noqa: SLF001  (ours; borrowed from the lock until it is released)

    # Not thread_local: other threads call is_current.
    lock = filelock.FileLock(
        path, mode=PRIVATE_FILE_MODE, thread_local=False, preserve_lock_file=True, on_acquired=write_owner
    )
    try:
        path.parent.stat()  # filelock would create a missing directory itself, and not a private one
        _require_plain_file(path)
        lock.acquire(timeout=seconds, cancel_check=cancelled)
    except filelock.Timeout:
        yield None
        return
    except OSError as error:
        raise StateError(
            f"The lock file {path} cannot be used ({error.strerror}). Check the directory's permissions and that it "
            "is on a local file system, or set ECHOD_STATE_DIR to a directory on one."
        ) from error
    try:
        yield held_lock
    finally:
        held_lock._descriptor = None  # noqa: SLF001
        lock.release()


def _require_plain_file(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a plain file", str(path))


def _read_owner(path: Path) -> LockOwner | None:
    try:
        return read_lock_state(path).owner
    except OSError:
        return None


def _describe_owner(owner: LockOwner | None) -> str:
    if owner is None:
        return ""
    since = local_datetime(owner.since)
    return f" (process {owner.pid}, version {owner.version}, since {since:%Y-%m-%d %H:%M})"
