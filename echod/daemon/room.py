"""Is there room on a disk for what echod must write? Looks, never writes."""

from __future__ import annotations

import os
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
