"""Workflow locks: `tmp/.rune-locks/{workflow}/meta.json`, and upstream's lock of its move from `.claude` to `.rune`.

A lock is a directory; who holds it is written a moment later. Upstream takes locks as advice: none held proves nothing.

A directory of markers that cannot be listed: who knows what is in it, so it counts, for a bounded time.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from echod.workflows import files
from echod.workflows.model import NOBODY, Claim, Kind, Marker

if TYPE_CHECKING:
    from echod.workflows.model import Processes


def unlistable(project: Path, directory: Path, written: float | None) -> Marker:
    """The sign that `directory`, last changed at `written` (Unix seconds), cannot be listed."""
    path = files.relative(directory, project)
    return Marker(
        kind=Kind.UNSEEN,
        path=path,
        name=directory.name,
        says=f"the directory {path} cannot be read; make it readable for echod",
        claim=Claim.UNREADABLE,
        written=written,
        touched=written,
    )


# Names with a dot are locks in the act of being made or reclaimed.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_SOURCE = re.compile(r"/[a-zA-Z0-9_./ -]+")
_SIZE_LIMIT = 1 << 16
_COUNT_LIMIT = 256


def read(project: Path, processes: Processes) -> tuple[Marker, ...]:
    """The locks that concern a project; in a worktree, upstream takes them in the main repository."""
    roots = dict.fromkeys((project, *_main_repository(project)))
    held = (marker for root in roots for marker in _locks(root / "tmp" / ".rune-locks", project, processes))
    return (*held, *_migration(project))


def _locks(base: Path, project: Path, processes: Processes) -> tuple[Marker, ...]:
    if not files.is_directory(base.parent) or not files.is_directory(base):
        return ()
    listing = files.names_in(base, lambda name: _NAME.fullmatch(name) is not None)
    if not listing.readable:
        return (unlistable(project, base, listing.written),)
    # A lock that was given back leaves no file; the directory's own time tells of it.
    traces = Marker(
        kind=Kind.LOCK,
        path=files.relative(base, project),
        name="",
        says="a workflow lock was taken or given back",
        claim=Claim.ENDED,
        written=listing.written,
        touched=listing.written,
    )
    paths = files.newest((base / name for name in listing.names), _COUNT_LIMIT)
    locks = (_read_one(path, project, processes) for path in paths if files.is_directory(path))
    return (*locks, traces)


def _read_one(path: Path, project: Path, processes: Processes) -> Marker:
    found = files.read(path / "meta.json", _SIZE_LIMIT)
    meta = None if found is None else files.json_object(found)
    status = files.look(path)
    born = files.time_of(status) if status else None
    return Marker(
        kind=Kind.LOCK,
        path=files.relative(path, project),
        name=path.name,
        says=f"the lock of {path.name} is {'held' if meta else 'being taken'}",
        claim=Claim.RUNNING if meta else Claim.UNREADABLE,
        written=found.written if found else born,
        touched=found.written if found else born,
        owner=files.owner(meta, processes, "pid", "owner_pid") if meta else NOBODY,
        started=files.first_moment(meta, "started") if meta else None,
    )


def _migration(project: Path) -> tuple[Marker, ...]:
    path = project / ".rune" / ".migration-lock"
    status = files.look(path) if files.is_directory(path.parent) and files.is_directory(path) else None
    if status is None:
        return ()
    at = files.time_of(status)
    says = "the plugin is moving its files from .claude to .rune"
    return (Marker(Kind.MIGRATION, files.relative(path, project), "migration", says, Claim.RUNNING, at, at),)


def _main_repository(project: Path) -> tuple[Path, ...]:
    """The root that upstream wrote into a worktree it made; nothing for an ordinary project."""
    git = files.look(project / ".git")
    if git is None or files.is_directory(project / ".git"):
        return ()
    for root in (".rune", ".claude"):
        found = files.read(project / root / ".rune-worktree-source", _SIZE_LIMIT)
        first = (found.data or b"").partition(b"\n")[0].decode(errors="replace").strip() if found else ""
        if _SOURCE.fullmatch(first) and ".." not in first and files.is_directory(Path(first)):
            return (Path(first),)
    return ()
