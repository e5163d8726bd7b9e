"""On what kind of file system does a path lie, and does the kernel report there what other machines do?

Pure, except for `read_mounts`. Where nothing is known (macOS), nothing is claimed.

Is there room on a disk for what echod must write? Looks, never writes.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

LEAST_FREE_BYTES = 32 << 20
"""Below this, the images of one commit of the largest files may not fit any more."""


def free_bytes(path: Path) -> int | None:
    """What this user may still write on the file system that holds `path`; None where that cannot be told."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def has_room(path: Path) -> bool:
    """Whether there is enough; unknown is not "no"."""
    free = free_bytes(path)
    return free is None or free >= LEAST_FREE_BYTES


_REMOTE = re.compile(r"nfs4?|cifs|smb3?|smbfs|9p|fuse\..+|fuse|drvfs|vboxsf|virtiofs|ceph|afs|ncpfs|prl_fs|vmhgfs")
_ESCAPE = re.compile(r"\\([0-7]{3})")


def read_mounts() -> str:
    """The mount table of this process; "" where the platform has none."""
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def kind_of(path: Path, mounts: str) -> str | None:
    """The type of the file system that holds a path ("ext4", "nfs4", "fuse.sshfs"), or None if that is not known.

    Args:
        path: absolute and free of symlinks.
        mounts: the text of `read_mounts`; its form is described in proc_pid_mountinfo(5).
    """
    nearest, kind = "", None
    for line in mounts.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if not separator or len(fields) < 5:  # noqa: PLR2004  (the mount point is the fifth)
            continue
        point = _ESCAPE.sub(lambda octal: chr(int(octal[1], 8)), fields[4])
        # A later mount on the same point covers the earlier one.
        if _covers(point, str(path)) and len(point) >= len(nearest):
            nearest, kind = point, after.split(" ")[0]
    return kind


def misses_remote_changes(kind: str | None) -> bool:
    """Whether changes made by other machines give no event there, so that looking more often is the only way."""
    return kind is not None and _REMOTE.fullmatch(kind) is not None


def _covers(point: str, path: str) -> bool:
    return path == point or path.startswith(point.rstrip(os.sep) + os.sep)
