"""Read Claude Code's sessions that are busy in a project.

Its own directory has a `sessions/{pid}.json` for each running session. Only the word "busy" counts. A session that
waits for its user delays nothing, and an unknown word is not a reason either: every version brings new words, and
workflows leave markers of their own.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from echod.workflows import files
from echod.workflows.model import Marker, MarkerKind, MarkerOwner, MarkerState, ProcessTable

_NAME = re.compile(r"[0-9]{1,7}\.json")
_SIZE_LIMIT = 1 << 16
_COUNT_LIMIT = 256
_WORKTREES = Path(".claude/worktrees")


def read_markers(claude_home: Path, project: Path, processes: ProcessTable) -> tuple[Marker, ...]:
    """Return the busy sessions whose working directory is in the project (and not in a worktree copy of it)."""
    directory = claude_home / "sessions"
    names = files.list_names(directory, lambda name: _NAME.fullmatch(name) is not None).names
    paths = files.newest((directory / name for name in names), _COUNT_LIMIT)
    markers = (_read_session(path, project, processes) for path in paths)
    return tuple(marker for marker in markers if marker is not None)


def _read_session(path: Path, project: Path, processes: ProcessTable) -> Marker | None:
    file = files.read_file(path, _SIZE_LIMIT)
    session = None if file is None else files.parse_json_object(file)
    if file is None or session is None or files.normalize_status(files.text_field(session, "status")) != "busy":
        return None
    if not _works_in(files.text_field(session, "cwd"), project):
        return None
    number = files.parse_pid(session.get("pid")) or files.parse_pid(path.stem)
    if number is None:
        return None
    return Marker(
        kind=MarkerKind.SESSION,
        path=str(path),
        name=files.printable(files.text_field(session, "sessionId")),
        description="a Claude Code session is busy in this project",
        state=MarkerState.RUNNING,
        modified_at=file.modified_at,
        last_active=file.modified_at,
        owner=MarkerOwner(number, processes.lookup(number)),
        started=files.first_time(session, "startedAt", "started_at"),
    )


def _works_in(directory: str, project: Path) -> bool:
    if not Path(directory).is_absolute() or "\0" in directory:
        return False
    try:
        inside = Path(os.path.realpath(directory))
    except OSError:
        return False
    return inside.is_relative_to(project) and not inside.is_relative_to(project / _WORKTREES)
