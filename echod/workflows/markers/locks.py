"""Read workflow locks, and upstream's lock of its move from `.claude` to `.rune`.

A lock (`tmp/.rune-locks/{workflow}/meta.json`) is a directory; its owner is written a moment later. Upstream takes
locks as advice, so the absence of a lock proves nothing.

`unlistable_marker` is for all kinds of markers: a directory that cannot be listed may hold any of them, so it counts,
for a bounded time.
"""

from __future__ import annotations

import re
from pathlib import Path

from echod.workflows import files
from echod.workflows.model import NO_OWNER, Marker, MarkerKind, MarkerState, ProcessTable

DIRECTORY = "tmp/.rune-locks"

# Names with a dot are locks that are just being made or reclaimed.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_SOURCE = re.compile(r"/[a-zA-Z0-9_./ -]+")
_SIZE_LIMIT = 1 << 16
_COUNT_LIMIT = 256


def read_markers(project: Path, processes: ProcessTable) -> tuple[Marker, ...]:
    """Return the locks that concern a project; in a worktree, upstream takes them in the main repository."""
    roots = dict.fromkeys((project, *_main_repository(project)))
    markers = (marker for root in roots for marker in _lock_markers(root / DIRECTORY, project, processes))
    return (*markers, *_migration_markers(project))


def _lock_markers(base: Path, project: Path, processes: ProcessTable) -> tuple[Marker, ...]:
    if not files.is_directory(base.parent) or not files.is_directory(base):
        return ()
    listing = files.list_names(base, lambda name: _NAME.fullmatch(name) is not None)
    if not listing.readable:
        return (unlistable_marker(project, base, listing.modified_at),)
    # A released lock leaves no file; only the directory's own time shows it.
    released = Marker(
        kind=MarkerKind.LOCK,
        path=files.relative_path(base, project),
        name="",
        description="a workflow lock was taken or released",
        state=MarkerState.ENDED,
        modified_at=listing.modified_at,
        last_active=listing.modified_at,
    )
    paths = files.newest((base / name for name in listing.names), _COUNT_LIMIT)
    locks = (_read_lock(path, project, processes) for path in paths if files.is_directory(path))
    return (*locks, released)


def _read_lock(path: Path, project: Path, processes: ProcessTable) -> Marker:
    file = files.read_file(path / "meta.json", _SIZE_LIMIT)
    meta = None if file is None else files.parse_json_object(file)
    modified_at = files.modified_time_or_none(path) if file is None else file.modified_at
    return Marker(
        kind=MarkerKind.LOCK,
        path=files.relative_path(path, project),
        name=path.name,
        description=f"the lock of {path.name} is {'held' if meta else 'being taken'}",
        state=MarkerState.RUNNING if meta else MarkerState.UNREADABLE,
        modified_at=modified_at,
        last_active=modified_at,
        owner=files.find_owner(meta, processes, "pid", "owner_pid") if meta else NO_OWNER,
        started=files.first_time(meta, "started") if meta else None,
    )


def _migration_markers(project: Path) -> tuple[Marker, ...]:
    path = project / ".rune" / ".migration-lock"
    status = files.lstat_or_none(path) if files.is_directory(path.parent) and files.is_directory(path) else None
    if status is None:
        return ()
    modified_at = files.modified_time(status)
    description = "the plugin is moving its files from .claude to .rune"
    return (
        Marker(
            MarkerKind.MIGRATION,
            files.relative_path(path, project),
            "migration",
            description,
            MarkerState.RUNNING,
            modified_at,
            modified_at,
        ),
    )


def _main_repository(project: Path) -> tuple[Path, ...]:
    """Return the root that upstream wrote into a worktree it made; nothing for an ordinary project."""
    git = files.lstat_or_none(project / ".git")
    if git is None or files.is_directory(project / ".git"):
        return ()
    for root in files.UPSTREAM_DIRECTORIES:
        file = files.read_file(project / root / ".rune-worktree-source", _SIZE_LIMIT)
        first = (file.data or b"").partition(b"\n")[0].decode(errors="replace").strip() if file else ""
        if _SOURCE.fullmatch(first) and ".." not in first and files.is_directory(Path(first)):
            return (Path(first),)
    return ()


def unlistable_marker(project: Path, directory: Path, modified_at: float | None) -> Marker:
    """Return the marker for a `directory`, last changed at `modified_at` (Unix seconds), that cannot be listed."""
    path = files.relative_path(directory, project)
    return Marker(
        kind=MarkerKind.INACCESSIBLE,
        path=path,
        name=directory.name,
        description=f"the directory {path} cannot be read; make it readable for echod",
        state=MarkerState.UNREADABLE,
        modified_at=modified_at,
        last_active=modified_at,
    )
