"""Team signals: `tmp/.rune-signals/{team}/`, where a team's tasks report that they are done.

Files directly in `.rune-signals` are messages between hooks (and `.echo-dirty`, which echod itself touches): they say
nothing about workflows.
"""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING

from echod.workflows import files
from echod.workflows.markers.locks import unlistable
from echod.workflows.model import Claim, Kind, Marker

if TYPE_CHECKING:
    from pathlib import Path

_TEAM = re.compile(r"[A-Za-z0-9_-]{1,200}")
_NUMBER = re.compile(rb"\s*([0-9]{1,6})\s*")
_ALL_DONE = (".all-done", "all-tasks-done")
_EXPECTED_LIMIT = 64
_TEAM_LIMIT = 64
_FILE_LIMIT = 2_000


def read(project: Path) -> tuple[tuple[Marker, ...], dict[str, float]]:
    """The teams that wait for tasks or are done with them, and the last sign of life (Unix seconds) of every team."""
    base = project / "tmp" / ".rune-signals"
    if not files.is_directory(base.parent):
        return (), {}
    listing = files.names_in(base, lambda name: _TEAM.fullmatch(name) is not None)
    markers = [] if listing.readable else [unlistable(project, base, listing.written)]
    teams: dict[str, float] = {}
    for team in files.newest((base / name for name in listing.names), _TEAM_LIMIT):
        if not files.is_directory(team):
            continue
        contents = files.names_in(team, lambda _name: True)
        touched = _last_sign(team, contents)
        if touched is not None:
            teams[team.name] = touched
        markers.extend(_marker(team, project, contents, touched))
    return tuple(markers), teams


def _marker(team: Path, project: Path, contents: files.Listing, touched: float | None) -> tuple[Marker, ...]:
    if not contents.readable:
        return (unlistable(project, team, contents.written),)
    expected = files.read(team / ".expected", _EXPECTED_LIMIT)
    if expected is None:
        return ()
    done = sum(1 for name in contents.names if name.endswith(".done") and not name.startswith("."))
    total = _number(expected)
    if any(_is_plain_file(team / name) for name in _ALL_DONE if name in contents.names) or total == 0:
        claim, says = Claim.ENDED, f"team {team.name} has done its tasks"
    elif total is None:
        claim, says = Claim.UNREADABLE, f"team {team.name} does not say how many tasks it has"
    else:
        claim = Claim.RUNNING if total > done else Claim.ENDED
        says = f"team {team.name} has done {done} of {total} tasks"
    return (
        Marker(
            kind=Kind.SIGNALS,
            path=files.relative(team, project),
            name=team.name,
            says=says,
            claim=claim,
            written=expected.written,
            touched=touched,
        ),
    )


def _number(found: files.Found) -> int | None:
    match = _NUMBER.fullmatch(found.data) if found.data is not None and found.whole else None
    return int(match[1]) if match else None


def _last_sign(team: Path, contents: files.Listing) -> float | None:
    """Agents rewrite their activity files in place, which does not touch the directory."""
    statuses = (files.look(team / name) for name in contents.names[:_FILE_LIMIT])
    return files.latest(contents.written, *(files.time_of(status) for status in statuses if status))


def _is_plain_file(path: Path) -> bool:
    status = files.look(path)
    return status is not None and stat.S_ISREG(status.st_mode)
