"""Busy Claude Code sessions: `sessions/{pid}.json` in Claude Code's own directory, one for each session that runs.

Only the word "busy" counts. A session that waits for its person does not hold anything up, and a word that is not
known is no reason either: sessions come with every version, and workflows leave markers of their own.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from echod.workflows import files
from echod.workflows.model import Claim, Kind, Marker, Owner

if TYPE_CHECKING:
    from echod.workflows.model import Processes

_NAME = re.compile(r"[0-9]{1,7}\.json")
_SIZE_LIMIT = 1 << 16
_COUNT_LIMIT = 256
_WORKTREES = Path(".claude/worktrees")


def read(claude_home: Path, project: Path, processes: Processes) -> tuple[Marker, ...]:
    """The busy sessions whose working directory is in the project (and not in a worktree copy of it)."""
    directory = claude_home / "sessions"
    names = files.names_in(directory, lambda name: _NAME.fullmatch(name) is not None).names
    paths = files.newest((directory / name for name in names), _COUNT_LIMIT)
    found = (_read_one(path, project, processes) for path in paths)
    return tuple(marker for marker in found if marker is not None)


def _read_one(path: Path, project: Path, processes: Processes) -> Marker | None:
    found = files.read(path, _SIZE_LIMIT)
    session = None if found is None else files.json_object(found)
    if found is None or session is None or files.word(files.text(session, "status")) != "busy":
        return None
    if not _works_in(files.text(session, "cwd"), project):
        return None
    number = files.pid(session.get("pid")) or files.pid(path.stem)
    if number is None:
        return None
    return Marker(
        kind=Kind.SESSION,
        path=str(path),
        name=files.shown(files.text(session, "sessionId")),
        says="a Claude Code session is busy in this project",
        claim=Claim.RUNNING,
        written=found.written,
        touched=found.written,
        owner=Owner(number, processes.look(number)),
        started=files.first_moment(session, "startedAt", "started_at"),
    )


def _works_in(directory: str, project: Path) -> bool:
    if not Path(directory).is_absolute() or "\0" in directory:
        return False
    try:
        inside = Path(os.path.realpath(directory))
    except OSError:
        return False
    return inside.is_relative_to(project) and not inside.is_relative_to(project / _WORKTREES)
