"""The marks by which writers of observations tell each other what is recorded: `tmp/.rune-signals/.obs-{team}_{task}`.

They belong to the workflow plugins. echod reads them, adds its own, and never removes any.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from echod.logger import get_logger

log = get_logger(__name__)

_DIRECTORY = Path("tmp/.rune-signals")
_SHARED_FILE = 0o666  # less the umask: other programs of this user read it


def signalled(project: Path, signal: str) -> bool:
    """Whether somebody has marked this task as recorded."""
    return os.path.lexists(project / _DIRECTORY / signal)


def leave_signal(project: Path, signal: str) -> None:
    """Mark a task as recorded, where a plugin keeps such marks; a mark that cannot be left is only logged."""
    directory = project / _DIRECTORY
    try:
        if not all(stat.S_ISDIR(path.lstat().st_mode) for path in (directory.parent, directory)):
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(directory / signal, flags, _SHARED_FILE))
    except (FileNotFoundError, FileExistsError):
        return
    except OSError as error:
        log.info("signal_not_left", project=str(project), error=error.strerror)
