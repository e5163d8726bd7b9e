"""The sign of life that the daemon leaves in the runtime directory, and what it means to whoever reads it.

Health is progress: the stamp is renewed only while file events arrive and the worker moves, so a process that is
merely there looks as hung as it is. Read by `echod status`, hence free of heavy imports.

Is the daemon of this user well? Looks at its lock, its heartbeat and its process; for every command that asks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from echod.files import write_runtime_file
from echod.paths import Paths
from echod.runtime.locks import LockState, read_lock_state
from echod.runtime.process import RunningProcess, find_process

HEARTBEAT_SECONDS = 5.0
"""How often the daemon beats."""

WORKER_STALL_SECONDS = 20.0
"""A worker that has not moved for so long is stalled; long jobs report their progress more often than that."""

HEARTBEAT_MAX_AGE_SECONDS = 20.0
"""A heartbeat older than this means that the daemon's loop itself hangs."""

STARTUP_SECONDS = 30.0
"""A daemon that holds its lock may take so long until its first beat."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """One beat. Times named `*_at` are Unix seconds, for people; `*_monotonic` are for arithmetic.

    Attributes:
        pid: the daemon's process number.
        started: the start of that process (`process.Process.started`).
        version: the daemon's version.
        started_at: when the daemon came up.
        beat_at: when it last made progress.
        beat_monotonic: the same by the monotonic clock.
        worker_monotonic: when the worker last moved.
        canary_ok: file events arrive.
        job: the running job in words, or "".
        health: one line, the same that the supervisor shows.
        reconciled_at: when every store was last looked at; None before the first time.
        stalled: why the stamp is not renewed, or "".
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
    """The last beat, or None if there is none that this version understands.

    Raises:
        OSError: it is there but cannot be read.
    """
    try:
        values = json.loads(path.read_bytes())
        known_fields = {field.name: values[field.name] for field in fields(Heartbeat)}
        return Heartbeat(**known_fields)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


class HeartbeatWriter:
    """The daemon's side: writes the heartbeat while there is progress, and once when it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: Heartbeat | None = None
        self._problem = ""

    @property
    def problem(self) -> str:
        """Why the last beat could not be written, in words, or ""; `echod status` then takes the daemon for hung."""
        return self._problem

    def beat(self, heartbeat: Heartbeat) -> bool:
        """Leave a sign of life; False if there was no progress, and the stamp was therefore left as it was.

        Never raises: a daemon that works but cannot say so is still better than none.
        """
        stalled = _stall_reason(heartbeat)
        if not stalled:
            self._write(heartbeat)
            return True
        last = self._last or heartbeat
        stale = replace(heartbeat, beat_at=last.beat_at, beat_monotonic=last.beat_monotonic, stalled=stalled)
        if self._last is None or self._last.stalled != stalled:
            self._write(stale)
        return False

    def clear(self) -> None:
        """Remove the file at a clean end. Nobody needs it gone: the lock says who runs."""
        self._path.unlink(missing_ok=True)

    def _write(self, heartbeat: Heartbeat) -> None:
        self._last = heartbeat
        try:
            write_runtime_file(self._path, json.dumps(asdict(heartbeat)))
            self._problem = ""
        except OSError as error:
            self._problem = f"the heartbeat could not be written ({error.strerror})"


class DaemonState(StrEnum):
    """What can be said of a daemon from outside."""

    RUNNING = "running"
    STARTING = "starting"
    UPGRADED = "upgraded"
    HUNG = "hung"
    SUSPENDED = "suspended"
    STOPPED = "stopped"


class Liveness(NamedTuple):
    """The state, a sentence about it, the heartbeat if it is the running daemon's own, and its process, if it has one.

    `RUNNING` and `UPGRADED` answer; the latter runs as another version than the one asking (`heartbeat.version`).
    `SUSPENDED` was stopped by a signal: everything about it looks alive, and nothing happens.
    """

    state: DaemonState
    text: str
    heartbeat: Heartbeat | None
    pid: int | None = None

    @property
    def is_answering(self) -> bool:
        """Whether work handed over now will be done."""
        return self.state in {DaemonState.RUNNING, DaemonState.UPGRADED}


def assess_liveness(
    heartbeat: Heartbeat | None,
    lock: LockState,
    monotonic: float,
    find_process: Callable[[int], RunningProcess | None],
    version: str,
) -> Liveness:
    """Judge a daemon by its lock, its heartbeat and its process.

    Args:
        heartbeat: what `read` gave; where no daemon runs, read after the lock was looked at.
        lock: the state of `Paths.daemon_lock`.
        monotonic: seconds of the monotonic clock, which all processes share.
        find_process: looks a process up (`process.look_up`).
        version: the version of whoever asks.
    """
    if not lock.held:
        return Liveness(DaemonState.STOPPED, _stopped_text(heartbeat), None)
    owner = lock.owner
    process = find_process(owner.pid) if owner else None
    if owner is None or process is None or process.started != owner.started:
        # The text is written a moment after the lock is taken.
        return Liveness(DaemonState.STARTING, "A daemon is just starting.", None)
    pid = owner.pid
    own_heartbeat = _heartbeat_of(heartbeat, process)
    if process.suspended:
        return Liveness(
            DaemonState.SUSPENDED, f"The daemon (process {pid}) was stopped by a signal.", own_heartbeat, pid
        )
    if own_heartbeat is None:
        if monotonic - owner.since_monotonic <= STARTUP_SECONDS:
            return Liveness(DaemonState.STARTING, f"The daemon (process {pid}) is starting.", None, pid)
        return Liveness(DaemonState.HUNG, f"The daemon (process {pid}) never came up.", None, pid)
    age = monotonic - own_heartbeat.beat_monotonic
    if own_heartbeat.stalled:
        return Liveness(
            DaemonState.HUNG, f"The daemon (process {pid}) hangs: {own_heartbeat.stalled}.", own_heartbeat, pid
        )
    if age > HEARTBEAT_MAX_AGE_SECONDS:
        text = f"The daemon (process {pid}) has given no sign of life for {age:.0f} s."
        return Liveness(DaemonState.HUNG, text, own_heartbeat, pid)
    if own_heartbeat.version != version:
        text = f"The daemon runs version {own_heartbeat.version}, this is {version}."
        return Liveness(DaemonState.UPGRADED, text, own_heartbeat, pid)
    return Liveness(DaemonState.RUNNING, own_heartbeat.health, own_heartbeat, pid)


def _stopped_text(last_heartbeat: Heartbeat | None) -> str:
    """A daemon that stops in order takes its heartbeat with it; one that was killed cannot."""
    if last_heartbeat is None:
        return "The daemon is not running."
    return (
        f"The daemon is not running: process {last_heartbeat.pid} did not stop in order, so it "
        f"was killed, failed, or went down "
        "with the machine. What it left half done is finished when it starts again."
    )


def _heartbeat_of(heartbeat: Heartbeat | None, process: RunningProcess) -> Heartbeat | None:
    if heartbeat is None or (heartbeat.pid, heartbeat.started) != (process.pid, process.started):
        return None
    return heartbeat


def _stall_reason(heartbeat: Heartbeat) -> str:
    if not heartbeat.canary_ok:
        return "file events do not arrive any more"
    idle_seconds = heartbeat.beat_monotonic - heartbeat.worker_monotonic
    if idle_seconds > WORKER_STALL_SECONDS:
        return f"the worker has not moved ({heartbeat.job})" if heartbeat.job else "the worker has not moved"
    return ""


def read_liveness(paths: Paths, version: str, monotonic: float) -> Liveness:
    """What can be said of the daemon now.

    Args:
        paths: where its lock and heartbeat are.
        version: the version of whoever asks.
        monotonic: seconds of the monotonic clock.

    Raises:
        OSError: the lock or the heartbeat is there but cannot be read.
    """
    # The heartbeat first: a daemon that starts between the two looks is "starting", never "hung".
    heartbeat, lock = read_heartbeat(paths.heartbeat), read_lock_state(paths.daemon_lock)
    if heartbeat is not None and not lock.held:
        heartbeat = read_heartbeat(paths.heartbeat)  # one that stops in order between the two looks was not killed
    return assess_liveness(heartbeat, lock, monotonic, find_process, version)
