"""Detect git operations in progress in a repository that tracks a store.

Git itself is never run, because it would take locks. *Tracks* is decided by the repository's index: it contains the
store's path. That may match a path of the same ending elsewhere. Where the index cannot be searched (version 4 shortens
paths, a split index keeps them elsewhere, it is unreadable or huge) the answer is yes, because waiting for a merge
costs little, and changing files in the middle of one costs more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from echod.files import open_regular
from echod.workflows import files
from echod.workflows.model import Marker, MarkerKind, MarkerState

OPERATIONS = {
    "index.lock": "git is writing its index",
    "MERGE_HEAD": "a git merge is in progress",
    "CHERRY_PICK_HEAD": "a git cherry-pick is in progress",
    "REVERT_HEAD": "a git revert is in progress",
    "rebase-merge": "a git rebase is in progress",
    "rebase-apply": "a git rebase or am is in progress",
}
_GITDIR = b"gitdir:"
_GITDIR_LIMIT = 4_096
_INDEX_LIMIT = 256 << 20
_CHUNK = 1 << 20
_MAX_REBASE_FILES = 64


def read_markers(project: Path, stores: Sequence[Path]) -> tuple[Marker, ...]:
    """Return the git operations in progress that concern any of the stores."""
    markers: dict[Path, Marker] = {}
    for store in stores:
        repository = _find_repository(store)
        if repository is None:
            continue
        worktree, git = repository
        running = [name for name in OPERATIONS if files.lstat_or_none(git / name) is not None]
        if running and _may_track_path(git, store.relative_to(worktree)):
            markers |= {git / name: _marker(git / name, project) for name in running}
    return tuple(markers.values())


def may_track(store: Path) -> bool:
    """Return whether git may track files of a store: its index contains the store, or cannot be read."""
    repository = _find_repository(store)
    return repository is not None and _may_track_path(repository[1], store.relative_to(repository[0]))


def _marker(path: Path, project: Path) -> Marker:
    at, shown_path = _last_activity(path), files.relative_path(path, project)
    return Marker(MarkerKind.GIT, shown_path, path.name, OPERATIONS[path.name], MarkerState.RUNNING, at, at)


def _last_activity(path: Path) -> float | None:
    """Return the last sign of life. A rebase keeps its steps in files of its directory, rewritten in place."""
    names = files.list_names(path, lambda _name: True).names[:_MAX_REBASE_FILES]
    statuses = (files.lstat_or_none(at) for at in (path, *(path / step for step in names)))
    return files.latest_time(*(files.modified_time(status) for status in statuses if status))


def _find_repository(store: Path) -> tuple[Path, Path] | None:
    """Return the worktree that contains a store, and its git directory (elsewhere for a worktree or submodule)."""
    for directory in (store, *store.parents):
        link = directory / ".git"
        if files.lstat_or_none(link) is None:
            continue
        target = Path(os.path.realpath(link))
        git = target if files.is_directory(target) else _read_gitdir_link(target)
        if git is not None:
            return directory, git
    return None


def _read_gitdir_link(link: Path) -> Path | None:
    file = files.read_file(link, _GITDIR_LIMIT)
    if file is None or file.data is None or not file.data.startswith(_GITDIR):
        return None
    target = os.fsdecode(file.data.removeprefix(_GITDIR).strip())
    return None if not target or "\0" in target else Path(os.path.normpath(link.parent / target))


def _may_track_path(git: Path, relative_path: Path) -> bool:
    if files.list_names(git, lambda name: name.startswith("sharedindex.")).names:
        return True
    try:
        with open_regular(git / "index") as index:
            header = index.read(8)
            version = int.from_bytes(header[4:8], "big")
            if header[:4] != b"DIRC" or version not in {2, 3} or os.fstat(index.fileno()).st_size > _INDEX_LIMIT:
                return True
            return _contains(iter(lambda: index.read(_CHUNK), b""), os.fsencode(relative_path.as_posix()) + b"/")
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _contains(chunks: Iterable[bytes], needle: bytes) -> bool:
    tail = b""
    for chunk in chunks:
        window = tail + chunk
        if needle in window:
            return True
        tail = window[-len(needle) :]
    return False
