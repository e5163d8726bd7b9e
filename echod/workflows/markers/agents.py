"""Read the signs of agents at work: team signals, and Claude Code's sessions that are busy in a project.

A team's tasks report in `tmp/.rune-signals/{team}/` that they are done. Files directly in `.rune-signals` are messages
between hooks (and `.echo-dirty`, which echod itself touches). They mean nothing for workflows.

Claude Code's own directory has a `sessions/{pid}.json` for each running session. Only the word "busy" counts, and a
session without a terminal (`claude -p`), which works from its start to its end and states no word. A session that waits
for its user delays nothing, and an unknown word is not a reason either: every version brings new words, and workflows
leave markers of their own.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from echod.workflows import files
from echod.workflows.markers.state_files import unlistable_marker
from echod.workflows.model import Marker, MarkerKind, MarkerOwner, MarkerState, ProcessTable

SIGNALS_DIRECTORY = "tmp/.rune-signals"


_TEAM = re.compile(r"[A-Za-z0-9_-]{1,200}")
_NUMBER = re.compile(rb"\s*([0-9]{1,6})\s*")
_ALL_DONE = (".all-done", "all-tasks-done")
_EXPECTED_LIMIT = 64
_TEAM_LIMIT = 64
_FILE_LIMIT = 2_000

_SESSION = re.compile(r"[0-9]{1,7}\.json")
_SESSION_SIZE_LIMIT = 1 << 16
_SESSION_LIMIT = 256
_WORKTREES = Path(".claude/worktrees")
_HEADLESS_ENTRYPOINT = "sdk-cli"
_HEADLESS_OPTIONS = frozenset({b"-p", b"--print"})
_COMMAND_LIMIT = 4096
"""Enough for the options, which are before the prompt or after it; a longer prompt may hide them."""


def read_teams(project: Path) -> tuple[tuple[Marker, ...], dict[str, float]]:
    """Return a marker for each team with tasks, and the last sign of life (Unix seconds) of every team."""
    base = project / SIGNALS_DIRECTORY
    if not files.is_directory(base.parent):
        return (), {}
    listing = files.list_names(base, lambda name: _TEAM.fullmatch(name) is not None)
    markers = [] if listing.readable else [unlistable_marker(project, base, listing.modified_at)]
    teams: dict[str, float] = {}
    for team in files.newest((base / name for name in listing.names), _TEAM_LIMIT):
        if not files.is_directory(team):
            continue
        contents = files.list_names(team, lambda _name: True)
        last_active = _last_activity(team, contents)
        if last_active is not None:
            teams[team.name] = last_active
        markers.extend(_team_markers(team, project, contents, last_active))
    return tuple(markers), teams


def _team_markers(
    team: Path, project: Path, contents: files.DirectoryListing, last_active: float | None
) -> tuple[Marker, ...]:
    if not contents.readable:
        return (unlistable_marker(project, team, contents.modified_at),)
    expected = files.read_file(team / ".expected", _EXPECTED_LIMIT)
    if expected is None:
        return ()
    done = sum(1 for name in contents.names if name.endswith(".done") and not name.startswith("."))
    total = _parse_count(expected)
    all_done = (files.lstat_or_none(team / name) for name in _ALL_DONE if name in contents.names)
    if any(status is not None and stat.S_ISREG(status.st_mode) for status in all_done) or total == 0:
        state, description = MarkerState.ENDED, f"team {team.name} has done its tasks"
    elif total is None:
        state, description = MarkerState.UNREADABLE, f"team {team.name} does not state how many tasks it has"
    else:
        state = MarkerState.RUNNING if total > done else MarkerState.ENDED
        description = f"team {team.name} has done {done} of {total} tasks"
    path = files.relative_path(team, project)
    return (Marker(MarkerKind.SIGNALS, path, team.name, description, state, expected.modified_at, last_active),)


def _parse_count(file: files.MarkerFile) -> int | None:
    match = _NUMBER.fullmatch(file.data) if file.data is not None and file.complete else None
    return int(match[1]) if match else None


def _last_activity(team: Path, contents: files.DirectoryListing) -> float | None:
    """Return a team's last sign of life. Agents rewrite their files in place, which does not touch the directory."""
    statuses = (files.lstat_or_none(team / name) for name in contents.names[:_FILE_LIMIT])
    return files.latest_time(contents.modified_at, *(files.modified_time(status) for status in statuses if status))


def read_sessions(claude_home: Path, project: Path, processes: ProcessTable) -> tuple[Marker, ...]:
    """Return the busy sessions whose working directory is in the project (and not in a worktree copy of it)."""
    directory = claude_home / "sessions"
    names = files.list_names(directory, lambda name: _SESSION.fullmatch(name) is not None).names
    paths = files.newest((directory / name for name in names), _SESSION_LIMIT)
    markers = (_read_session(path, project, processes) for path in paths)
    return tuple(marker for marker in markers if marker is not None)


def _read_session(path: Path, project: Path, processes: ProcessTable) -> Marker | None:
    file = files.read_file(path, _SESSION_SIZE_LIMIT)
    session = None if file is None else files.parse_json_object(file)
    if file is None or session is None or not _works_in(files.text_field(session, "cwd"), project):
        return None
    number = files.parse_pid(session.get("pid")) or files.parse_pid(path.stem)
    if number is None:
        return None
    busy = files.normalize_status(files.text_field(session, "status")) == "busy"
    if not busy and not _is_headless(session, number):
        return None
    return Marker(
        kind=MarkerKind.SESSION,
        path=str(path),
        name=files.printable(files.text_field(session, "sessionId")),
        description=f"a Claude Code session {'is busy' if busy else 'without a terminal works'} in this project",
        state=MarkerState.RUNNING,
        modified_at=file.modified_at,
        last_active=file.modified_at,
        owner=MarkerOwner(number, processes.lookup(number)),
        started=files.first_time(session, "startedAt", "started_at"),
    )


def _is_headless(session: Mapping[str, object], number: int) -> bool:
    """Return whether a session was started to do one task and end (`claude -p`)."""
    if files.text_field(session, "entrypoint") == _HEADLESS_ENTRYPOINT:
        return True
    command = files.read_file(Path(f"/proc/{number}/cmdline"), _COMMAND_LIMIT)
    words = () if command is None or command.data is None else command.data.split(b"\0")
    return bool(words) and b"claude" in b" ".join(words[:2]) and not _HEADLESS_OPTIONS.isdisjoint(words[1:])


def _works_in(directory: str, project: Path) -> bool:
    if not Path(directory).is_absolute() or "\0" in directory:
        return False
    try:
        inside = Path(os.path.realpath(directory))
    except OSError:
        return False
    return inside.is_relative_to(project) and not inside.is_relative_to(project / _WORKTREES)
