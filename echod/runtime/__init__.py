"""The running service as other processes see it: its locks, heartbeat, wake file and free disk space.

The daemon, the commands and the status report share these modules, which import none of them. All are cheap to load:
filelock and psutil are imported only when a lock is taken, or where there is no /proc.

Modules for other packages: `heartbeat`, `locks`, `system`.
"""

from echod.runtime.heartbeat import (
    EVENTS_NOT_ARRIVING,
    HEARTBEAT_SECONDS,
    DaemonState,
    Heartbeat,
    HeartbeatWriter,
    Liveness,
    WakeFile,
    read_heartbeat,
    read_liveness,
    write_wake_file,
)
from echod.runtime.locks import (
    AlreadyRunningError,
    HeldLock,
    LockHeldError,
    LockOwner,
    LockState,
    WorkerBusyError,
    daemon_lock,
    read_lock_state,
    this_process,
    worker_lock,
)
from echod.runtime.system import (
    MIN_FREE_BYTES,
    RunningProcess,
    filesystem_type,
    find_process,
    free_bytes,
    has_free_space,
    is_remote_filesystem,
    read_mounts,
)

__all__ = [
    "EVENTS_NOT_ARRIVING", "HEARTBEAT_SECONDS", "MIN_FREE_BYTES", "AlreadyRunningError", "DaemonState",
    "Heartbeat", "HeartbeatWriter", "HeldLock", "Liveness", "LockHeldError", "LockOwner", "LockState",
    "RunningProcess", "WakeFile", "WorkerBusyError", "daemon_lock", "filesystem_type", "find_process",
    "free_bytes", "has_free_space", "is_remote_filesystem", "read_heartbeat", "read_liveness",
    "read_lock_state", "read_mounts", "this_process", "worker_lock", "write_wake_file",
]  # fmt: skip
