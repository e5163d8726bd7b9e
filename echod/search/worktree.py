"""List the files of a project that its user works on now: those that git reports as changed.

git is only asked to compare names and times. It runs no hook, no filter and no file-system monitor, which a repository
could bring along. A module of its own, because it is the only one in the package that starts a process.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAX_CHANGED_FILES: Final = 50
_TIMEOUT_SECONDS: Final = 2.0
_GIT: Final = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_COMMANDS: Final = (
    ("diff-files", "--name-only", "--relative", "-z"),
    ("diff-index", "--cached", "--name-only", "--relative", "-z", "HEAD"),
    ("ls-files", "--others", "--exclude-standard", "-z"),
)


def changed_files(project: Path) -> tuple[str, ...]:
    """Return the changed, staged and new files of a project, relative to it.

    There are none where the project is in no repository, git is missing, or it takes too long.
    """
    return tuple(dict.fromkeys(_iter_changed(project)))[:MAX_CHANGED_FILES]


def _iter_changed(project: Path) -> Iterator[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    for command in _COMMANDS:
        try:
            done = subprocess.run(
                (*_GIT, *command), cwd=project, env=environ, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return
        yield from (os.fsdecode(name) for name in done.stdout.split(b"\0") if name)
