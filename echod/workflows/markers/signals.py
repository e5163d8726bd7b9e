"""Read team signals: `tmp/.rune-signals/{team}/`, where a team's tasks report that they are done.

Files directly in `.rune-signals` are messages between hooks (and `.echo-dirty`, which echod itself touches). They mean
nothing for workflows.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path

from echod.workflows import files
from echod.workflows.markers.locks import unlistable_marker
from echod.workflows.model import Marker, MarkerKind, MarkerState

DIRECTORY = "tmp/.rune-signals"

_TEAM = re.compile(r"[A-Za-z0-9_-]{1,200}")
_NUMBER = re.compile(rb"\s*([0-9]{1,6})\s*")
_ALL_DONE = (".all-done", "all-tasks-done")
_EXPECTED_LIMIT = 64
_TEAM_LIMIT = 64
_FILE_LIMIT = 2_000


def read_markers(project: Path) -> tuple[tuple[Marker, ...], dict[str, float]]:
    """Return a marker for each team with tasks, and the last sign of life (Unix seconds) of every team."""
    base = project / DIRECTORY
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
    if any(_is_regular_file(team / name) for name in _ALL_DONE if name in contents.names) or total == 0:
        state, description = MarkerState.ENDED, f"team {team.name} has done its tasks"
    elif total is None:
        state, description = MarkerState.UNREADABLE, f"team {team.name} does not state how many tasks it has"
    else:
        state = MarkerState.RUNNING if total > done else MarkerState.ENDED
        description = f"team {team.name} has done {done} of {total} tasks"
    return (
        Marker(
            kind=MarkerKind.SIGNALS,
            path=files.relative_path(team, project),
            name=team.name,
            description=description,
            state=state,
            modified_at=expected.modified_at,
            last_active=last_active,
        ),
    )


def _parse_count(file: files.MarkerFile) -> int | None:
    match = _NUMBER.fullmatch(file.data) if file.data is not None and file.complete else None
    return int(match[1]) if match else None


def _last_activity(team: Path, contents: files.DirectoryListing) -> float | None:
    """Return a team's last sign of life.

    Agents rewrite their activity files in place, which does not touch the directory.
    """
    statuses = (files.lstat_or_none(team / name) for name in contents.names[:_FILE_LIMIT])
    return files.latest_time(contents.modified_at, *(files.modified_time(status) for status in statuses if status))


def _is_regular_file(path: Path) -> bool:
    status = files.lstat_or_none(path)
    return status is not None and stat.S_ISREG(status.st_mode)
