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

from echod.files import leave
from echod.paths import Paths
from echod.runtime.locks import LockState, lock_state
from echod.runtime.process import Process, look_up

BEAT_SECONDS = 5.0
"""How often the daemon beats."""

STALL_SECONDS = 20.0
"""A worker that has not moved for so long is stalled; long jobs report their progress more often than that."""

FRESH_SECONDS = 20.0
"""A heartbeat older than this means that the daemon's loop itself hangs."""

START_SECONDS = 30.0
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


def read(path: Path) -> Heartbeat | None:
    """The last beat, or None if there is none that this version understands.

    Raises:
        OSError: it is there but cannot be read.
    """
    try:
        found = json.loads(path.read_bytes())
        known = {field.name: found[field.name] for field in fields(Heartbeat)}
        return Heartbeat(**known)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


class Heart:
    """The daemon's side: writes the heartbeat while there is progress, and once when it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: Heartbeat | None = None
        self._trouble = ""

    @property
    def trouble(self) -> str:
        """Why the last beat could not be written, in words, or ""; `echod status` then takes the daemon for hung."""
        return self._trouble

    def beat(self, now: Heartbeat) -> bool:
        """Leave a sign of life; False if there was no progress, and the stamp was therefore left as it was.

        Never raises: a daemon that works but cannot say so is still better than none.
        """
        stalled = _stall(now)
        if not stalled:
            self._write(now)
            return True
        at = self._last or now
        stale = replace(now, beat_at=at.beat_at, beat_monotonic=at.beat_monotonic, stalled=stalled)
        if self._last is None or self._last.stalled != stalled:
            self._write(stale)
        return False

    def clear(self) -> None:
        """Remove the file at a clean end. Nobody needs it gone: the lock says who runs."""
        self._path.unlink(missing_ok=True)

    def _write(self, beat: Heartbeat) -> None:
        self._last = beat
        try:
            leave(self._path, json.dumps(asdict(beat)))
            self._trouble = ""
        except OSError as error:
            self._trouble = f"the heartbeat could not be written ({error.strerror})"


class State(StrEnum):
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

    state: State
    text: str
    heartbeat: Heartbeat | None
    pid: int | None = None

    @property
    def answers(self) -> bool:
        """Whether work handed over now will be done."""
        return self.state in {State.RUNNING, State.UPGRADED}


def liveness(
    heartbeat: Heartbeat | None,
    lock: LockState,
    monotonic: float,
    find: Callable[[int], Process | None],
    version: str,
) -> Liveness:
    """Judge a daemon by its lock, its heartbeat and its process.

    Args:
        heartbeat: what `read` gave; where no daemon runs, read after the lock was looked at.
        lock: the state of `Paths.daemon_lock`.
        monotonic: seconds of the monotonic clock, which all processes share.
        find: looks a process up (`process.look_up`).
        version: the version of whoever asks.
    """
    if not lock.held:
        return Liveness(State.STOPPED, _ended(heartbeat), None)
    holder = lock.holder
    process = find(holder.pid) if holder else None
    if holder is None or process is None or process.started != holder.started:
        # The text is written a moment after the lock is taken.
        return Liveness(State.STARTING, "A daemon is just starting.", None)
    pid = holder.pid
    own = _own(heartbeat, process)
    if process.suspended:
        return Liveness(State.SUSPENDED, f"The daemon (process {pid}) was stopped by a signal.", own, pid)
    if own is None:
        if monotonic - holder.since_monotonic <= START_SECONDS:
            return Liveness(State.STARTING, f"The daemon (process {pid}) is starting.", None, pid)
        return Liveness(State.HUNG, f"The daemon (process {pid}) never came up.", None, pid)
    age = monotonic - own.beat_monotonic
    if own.stalled:
        return Liveness(State.HUNG, f"The daemon (process {pid}) hangs: {own.stalled}.", own, pid)
    if age > FRESH_SECONDS:
        text = f"The daemon (process {pid}) has given no sign of life for {age:.0f} s."
        return Liveness(State.HUNG, text, own, pid)
    if own.version != version:
        text = f"The daemon runs version {own.version}, this is {version}."
        return Liveness(State.UPGRADED, text, own, pid)
    return Liveness(State.RUNNING, own.health, own, pid)


def _ended(left: Heartbeat | None) -> str:
    """A daemon that stops in order takes its heartbeat with it; one that was killed cannot."""
    if left is None:
        return "The daemon is not running."
    return (
        f"The daemon is not running: process {left.pid} did not stop in order, so it was killed, failed, or went down "
        "with the machine. What it left half done is finished when it starts again."
    )


def _own(heartbeat: Heartbeat | None, process: Process) -> Heartbeat | None:
    if heartbeat is None or (heartbeat.pid, heartbeat.started) != (process.pid, process.started):
        return None
    return heartbeat


def _stall(now: Heartbeat) -> str:
    if not now.canary_ok:
        return "file events do not arrive any more"
    still = now.beat_monotonic - now.worker_monotonic
    if still > STALL_SECONDS:
        return f"the worker has not moved ({now.job})" if now.job else "the worker has not moved"
    return ""


def observe(paths: Paths, version: str, monotonic: float) -> Liveness:
    """What can be said of the daemon now.

    Args:
        paths: where its lock and heartbeat are.
        version: the version of whoever asks.
        monotonic: seconds of the monotonic clock.

    Raises:
        OSError: the lock or the heartbeat is there but cannot be read.
    """
    # The heartbeat first: a daemon that starts between the two looks is "starting", never "hung".
    heartbeat, lock = read(paths.heartbeat), lock_state(paths.daemon_lock)
    if heartbeat is not None and not lock.held:
        heartbeat = read(paths.heartbeat)  # one that stops in order between the two looks was not killed
    return liveness(heartbeat, lock, monotonic, look_up, version)
