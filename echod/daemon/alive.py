"""Is the daemon of this user well? Looks at its lock, its heartbeat and its process; for every command that asks."""

from __future__ import annotations

from echod.daemon.holder import lock_state
from echod.paths import Paths
from echod.runtime.heartbeat import Liveness, liveness, read
from echod.runtime.process import look_up


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
