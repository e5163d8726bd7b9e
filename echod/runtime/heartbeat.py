"""Write the daemon's heartbeat file, judge from outside whether it makes progress, and wake it from a command.

Health is progress. The time in the file is renewed only while file events arrive and the worker moves, so a process
that merely exists is reported as hung. A reader combines the heartbeat with the daemon's lock and process.

`echod status` uses this module, so it loads nothing heavy.

The daemon sees the write through its watcher or, where nothing is watched, by comparing the file now and then. A
module of its own because it is a protocol of its own: commands write the file, and only the daemon reads it.
"""

from __future__ import annotations

import errno
import json
import math
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from echod.errors import GARBLED_ERRORS
from echod.files import read_regular, write_runtime_file
from echod.paths import Paths
from echod.runtime.locks import LockState, read_lock_state
from echod.runtime.system import RunningProcess, find_process

HEARTBEAT_SECONDS = 5.0
"""The interval between two heartbeats."""

WORKER_STALL_SECONDS = 20.0
"""A worker without progress for this long is stalled. Long jobs report their progress more often than that."""

HEARTBEAT_MAX_AGE_SECONDS = 20.0
"""A heartbeat older than this means that the daemon's loop itself hangs."""

STARTUP_SECONDS = 30.0
"""The time that a daemon may take from its lock to its first heartbeat."""

_MAX_HEARTBEAT_BYTES = 64 * 1024

EVENTS_NOT_ARRIVING = "file events do not arrive any more"
"""Part of a sentence for `echod status`."""


class Heartbeat(NamedTuple):
    """The content of the heartbeat file. Times `*_at` are Unix seconds, for display. `*_monotonic` are for arithmetic.

    `started` is `RunningProcess.started`. `beat_*` and `worker_monotonic` are the last progress of daemon and worker.
    `job` is the running job in words, or "". `health` is one line, which the supervisor shows too. `reconciled_at` is
    when every store was last inspected; None before the first time. `stalled` is why progress is not renewed, or "".
    """

    pid: int
    started: str
    version: str
    started_at: float
    beat_at: float
    beat_monotonic: float
    worker_monotonic: float
    canary_ok: bool
    job: str
    health: str
    reconciled_at: float | None
    stalled: str = ""


def read_heartbeat(path: Path) -> Heartbeat | None:
    """Return the last heartbeat, or None if the file is missing or this version does not understand it."""
    try:
        values = json.loads(read_regular(path, _MAX_HEARTBEAT_BYTES))
        heartbeat = Heartbeat(**{name: values[name] for name in Heartbeat._fields})
    except (FileNotFoundError, *GARBLED_ERRORS):
        return None
    except OSError as error:
        if error.errno in {errno.EINVAL, errno.EFBIG, errno.ELOOP}:
            return None  # no daemon wrote it
        raise
    return heartbeat if _is_plausible(heartbeat) else None


def _is_plausible(heartbeat: Heartbeat) -> bool:
    times = (heartbeat.started_at, heartbeat.beat_at, heartbeat.beat_monotonic, heartbeat.worker_monotonic)
    texts = (heartbeat.started, heartbeat.version, heartbeat.job, heartbeat.health, heartbeat.stalled)
    reconciled_at = 0.0 if heartbeat.reconciled_at is None else heartbeat.reconciled_at
    return (
        type(heartbeat.pid) is int
        and all(isinstance(moment, int | float) and math.isfinite(moment) for moment in (*times, reconciled_at))
        and all(isinstance(text, str) for text in texts)
    )


class HeartbeatWriter:
    """The daemon's side. Writes the heartbeat while there is progress, and once when progress ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: Heartbeat | None = None
        self._problem = ""

    @property
    def problem(self) -> str:
        """Why the last heartbeat could not be written, or "". `echod status` then reports the daemon as hung."""
        return self._problem

    def beat(self, heartbeat: Heartbeat) -> bool:
        """Write a heartbeat. Return False, and keep the old time of progress, if there was no progress.

        Never raises, because a daemon that works but cannot report it is still better than none.
        """
        stalled = _stall_reason(heartbeat)
        if not stalled:
            self._write(heartbeat)
        elif self._last is None or self._last.stalled != stalled:
            last = self._last or heartbeat
            self._write(heartbeat._replace(beat_at=last.beat_at, beat_monotonic=last.beat_monotonic, stalled=stalled))
        return not stalled

    def clear(self) -> None:
        """Remove the file at a clean end. No reader depends on that, because the lock shows who is running."""
        self._path.unlink(missing_ok=True)

    def _write(self, heartbeat: Heartbeat) -> None:
        self._last = heartbeat
        try:
            write_runtime_file(self._path, json.dumps(heartbeat._asdict()))
            self._problem = ""
        except OSError as error:
            self._problem = f"the heartbeat could not be written ({error.strerror})"


class DaemonState(StrEnum):
    """The state of a daemon as other processes see it."""

    RUNNING = "running"
    STARTING = "starting"
    UPGRADED = "upgraded"
    HUNG = "hung"
    SUSPENDED = "suspended"
    STOPPED = "stopped"


class Liveness(NamedTuple):
    """The state of a daemon, one sentence about it, the running daemon's own heartbeat, and its process number.

    A daemon that is `RUNNING` or `UPGRADED` answers. `UPGRADED` means that it runs another version than the reader
    (`heartbeat.version`). `SUSPENDED` means that a signal stopped it: everything about it looks alive, but it does
    nothing.
    """

    state: DaemonState
    text: str
    heartbeat: Heartbeat | None
    pid: int | None = None

    @property
    def is_answering(self) -> bool:
        """True if work that is queued now will be done."""
        return self.state in {DaemonState.RUNNING, DaemonState.UPGRADED}


def read_liveness(paths: Paths, version: str, monotonic: float) -> Liveness:
    """Return the present state of the daemon. `version` is the caller's.

    Raises:
        OSError: the lock or the heartbeat exists but cannot be read.
    """
    # The heartbeat first: a daemon that starts between the two reads is "starting", never "hung".
    heartbeat, lock = read_heartbeat(paths.heartbeat), read_lock_state(paths.daemon_lock)
    if heartbeat is not None and not lock.held:
        heartbeat = read_heartbeat(paths.heartbeat)  # a daemon that stopped cleanly between the reads was not killed
    return assess_liveness(heartbeat, lock, monotonic, find_process, version)


def assess_liveness(
    heartbeat: Heartbeat | None,
    lock: LockState,
    monotonic: float,
    find_process: Callable[[int], RunningProcess | None],
    version: str,
) -> Liveness:
    """Judge a daemon by its lock, its heartbeat and its process. `version` is the caller's.

    Where no daemon is running, `heartbeat` was read after the lock. `monotonic` is a clock that all processes share.
    """
    if not lock.held:
        # A daemon that stops cleanly removes its heartbeat; one that was killed cannot.
        text = "The daemon is not running."
        if heartbeat is not None:
            text = (
                f"The daemon is not running: process {heartbeat.pid} did not stop cleanly. It was killed, failed, or "
                "ended with the machine. Unfinished work is completed when it starts again."
            )
        return Liveness(DaemonState.STOPPED, text, None)
    owner = lock.owner
    process = find_process(owner.pid) if owner else None
    if owner is None or process is None or process.started != owner.started:
        # The owner is written a moment after the lock is taken.
        return Liveness(DaemonState.STARTING, "A daemon is just starting.", None)
    pid = owner.pid
    own = heartbeat
    if heartbeat is not None and (heartbeat.pid, heartbeat.started) != (process.pid, process.started):
        own = None
    if process.suspended:
        return Liveness(DaemonState.SUSPENDED, f"The daemon (process {pid}) was stopped by a signal.", own, pid)
    if own is None:
        if monotonic - owner.since_monotonic <= STARTUP_SECONDS:
            return Liveness(DaemonState.STARTING, f"The daemon (process {pid}) is starting.", None, pid)
        return Liveness(DaemonState.HUNG, f"The daemon (process {pid}) did not finish starting.", None, pid)
    age = monotonic - own.beat_monotonic
    if own.stalled:
        return Liveness(DaemonState.HUNG, f"The daemon (process {pid}) hangs: {own.stalled}.", own, pid)
    if age > HEARTBEAT_MAX_AGE_SECONDS:
        text = f"The daemon (process {pid}) has not reported progress for {age:.0f} s."
        return Liveness(DaemonState.HUNG, text, own, pid)
    if own.version != version:
        text = f"The daemon runs version {own.version}. This is version {version}."
        return Liveness(DaemonState.UPGRADED, text, own, pid)
    return Liveness(DaemonState.RUNNING, own.health, own, pid)


def _stall_reason(heartbeat: Heartbeat) -> str:
    if not heartbeat.canary_ok:
        return EVENTS_NOT_ARRIVING
    if heartbeat.beat_monotonic - heartbeat.worker_monotonic > WORKER_STALL_SECONDS:
        return f"the worker makes no progress ({heartbeat.job})" if heartbeat.job else "the worker makes no progress"
    return ""


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
