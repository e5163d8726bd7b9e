"""Ask the operating system: free space, file system types and mounts, and processes. Read-only.

A file system type matters because the kernel reports no event for a change made by another machine. Where nothing is
known (macOS has no /proc), the functions return None or "" and claim nothing. A process is identified by its number and
its start, since numbers are used again. Loads nothing heavy where /proc exists, because `echod status` uses it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from echod.lazy_imports import lazy_imports

with lazy_imports(__name__):
    import psutil

MIN_FREE_BYTES = 32 << 20
"""Below this, the blobs of one commit of the largest files may not fit any more."""

_REMOTE_TYPES = re.compile(r"nfs4?|cifs|smb3?|smbfs|9p|fuse(\..+)?|drvfs|vboxsf|virtiofs|ceph|afs|ncpfs|prl_fs|vmhgfs")
_OCTAL_ESCAPE = re.compile(r"\\([0-7]{3})")


def free_bytes(path: Path) -> int | None:
    """Return the bytes that this user may still write on the file system of `path`; None if unknown."""
    try:
        status = os.statvfs(path)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def has_free_space(path: Path) -> bool:
    """Return whether at least `MIN_FREE_BYTES` are free. True if that is unknown."""
    free = free_bytes(path)
    return free is None or free >= MIN_FREE_BYTES


def read_mounts() -> str:
    """Return the mount table of this process; "" where the platform has none."""
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def filesystem_type(path: Path, mounts: str) -> str | None:
    """Return the type of the file system of a path ("ext4", "nfs4", "fuse.sshfs"), or None if it is not known.

    The path is absolute and free of symlinks. proc_pid_mountinfo(5) describes the format of `mounts`.
    """
    nearest_mount, type_name = "", None
    for line in mounts.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if not separator or len(fields) < 5:  # noqa: PLR2004  (the mount point is the fifth)
            continue
        mount_point = _OCTAL_ESCAPE.sub(lambda octal: chr(int(octal[1], 8)), fields[4])
        below = str(path) == mount_point or str(path).startswith(mount_point.rstrip(os.sep) + os.sep)
        # A later mount on the same point covers the earlier one.
        if below and len(mount_point) >= len(nearest_mount):
            nearest_mount, type_name = mount_point, after.split(" ")[0]
    return type_name


def is_remote_filesystem(type_name: str | None) -> bool:
    """Return whether other machines may change files of this type without an event here, so that echod must poll."""
    return type_name is not None and _REMOTE_TYPES.fullmatch(type_name) is not None


_HAS_PROC = Path("/proc/self/stat").exists()


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """A process that exists. `started` identifies its start, even if the wall clock is changed; compared as text.

    If it is `suspended`, a signal stopped it (SIGSTOP, a terminal, a debugger), so it makes no progress.
    """

    pid: int
    started: str
    suspended: bool


def find_process(pid: int) -> RunningProcess | None:
    """Return the process with this number, or None. A zombie counts as no process."""
    return _find_in_proc(pid) if _HAS_PROC else _find_with_psutil(pid)


def _find_in_proc(pid: int) -> RunningProcess | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may itself contain spaces and parentheses: proc_pid_stat(5).
    fields = text.rpartition(")")[2].split()
    state, ticks = fields[0], fields[19]
    if state in "ZXx":
        return None
    return RunningProcess(pid, f"{_boot_id()}:{ticks}", suspended=state in "Tt")


def _boot_id() -> str:
    # Ticks since boot repeat after a reboot, and so do low process numbers.
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "boot"


def _find_with_psutil(pid: int) -> RunningProcess | None:
    try:
        process = psutil.Process(pid)
        status, started = process.status(), process.create_time()
    except psutil.Error:
        return None
    if status == psutil.STATUS_ZOMBIE:
        return None
    suspended = status in {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP}
    return RunningProcess(pid, f"{started:.2f}", suspended)
