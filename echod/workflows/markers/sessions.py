"""Busy Claude Code sessions: `sessions/{pid}.json` in Claude Code's own directory, one for each session that runs.

Only the word "busy" counts. A session that waits for its person does not hold anything up, and a word that is not
known is no reason either: sessions come with every version, and workflows leave markers of their own.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from echod.workflows import fields
from echod.workflows import files as reading
from echod.workflows.model import Claim, Marker, Owner
from echod.workflows.verdict import Kind

if TYPE_CHECKING:
    from echod.workflows.processes import Processes

_NAME = re.compile(r"[0-9]{1,7}\.json")
_SIZE_LIMIT = 1 << 16
_COUNT_LIMIT = 256
_WORKTREES = Path(".claude/worktrees")


def read(claude_home: Path, project: Path, processes: Processes) -> tuple[Marker, ...]:
    """The busy sessions whose working directory is in the project (and not in a worktree copy of it)."""
    directory = claude_home / "sessions"
    names = reading.names_in(directory, lambda name: _NAME.fullmatch(name) is not None).names
    paths = reading.newest((directory / name for name in names), _COUNT_LIMIT)
    found = (_read_one(path, project, processes) for path in paths)
    return tuple(marker for marker in found if marker is not None)


def _read_one(path: Path, project: Path, processes: Processes) -> Marker | None:
    found = reading.read(path, _SIZE_LIMIT)
    session = None if found is None else fields.json_object(found)
    if found is None or session is None or fields.word(fields.text(session, "status")) != "busy":
        return None
    if not _works_in(fields.text(session, "cwd"), project):
        return None
    number = fields.pid(session.get("pid")) or fields.pid(path.stem)
    if number is None:
        return None
    return Marker(
        kind=Kind.SESSION,
        path=str(path),
        name=fields.shown(fields.text(session, "sessionId")),
        says="a Claude Code session is busy in this project",
        claim=Claim.RUNNING,
        written=found.written,
        touched=found.written,
        owner=Owner(number, processes.look(number)),
        started=fields.first_moment(session, "startedAt", "started_at"),
    )


def _works_in(directory: str, project: Path) -> bool:
    if not Path(directory).is_absolute() or "\0" in directory:
        return False
    try:
        inside = Path(os.path.realpath(directory))
    except OSError:
        return False
    return inside.is_relative_to(project) and not inside.is_relative_to(project / _WORKTREES)
