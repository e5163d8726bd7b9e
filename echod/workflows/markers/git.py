"""Git operations in progress in a repository that tracks a store. Git itself is never run: it would take locks.

*Tracks* is decided by the repository's index: the store's path stands in it. That may find a path of the same ending
elsewhere, and where the index cannot be searched (version 4 shortens paths, a split index keeps them elsewhere, it is
unreadable or huge) the answer is yes: waiting for a merge costs little, changing files in the middle of one costs more.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from echod.files import open_plain
from echod.workflows import files
from echod.workflows.model import Claim, Kind, Marker

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
_STEPS_SHOWN = 64


def read(project: Path, stores: Sequence[Path]) -> tuple[Marker, ...]:
    """The git operations in progress that concern any of the stores."""
    markers: dict[Path, Marker] = {}
    for store in stores:
        repository = _repository_of(store)
        if repository is None:
            continue
        worktree, git = repository
        running = [name for name in OPERATIONS if files.look(git / name) is not None]
        if running and _tracks(git, store.relative_to(worktree)):
            markers |= {git / name: _marker(git / name, project) for name in running}
    return tuple(markers.values())


def may_track(store: Path) -> bool:
    """Whether git tracks files of a store, as far as its index tells: where that cannot be read, it may."""
    repository = _repository_of(store)
    return repository is not None and _tracks(repository[1], store.relative_to(repository[0]))


def _marker(path: Path, project: Path) -> Marker:
    at = _last_sign(path)
    shown = files.relative(path, project)
    return Marker(Kind.GIT, shown, path.name, OPERATIONS[path.name], Claim.RUNNING, at, at)


def _last_sign(path: Path) -> float | None:
    """A rebase keeps its steps in files of its directory, rewritten in place."""
    steps = files.names_in(path, lambda _name: True).names[:_STEPS_SHOWN]
    statuses = (files.look(at) for at in (path, *(path / step for step in steps)))
    return files.latest(*(files.time_of(status) for status in statuses if status))


def _repository_of(store: Path) -> tuple[Path, Path] | None:
    """The worktree that a store lies in, and its git directory, which a worktree or submodule keeps elsewhere."""
    for directory in (store, *store.parents):
        link = directory / ".git"
        if files.look(link) is None:
            continue
        target = Path(os.path.realpath(link))
        git = target if files.is_directory(target) else _elsewhere(target)
        if git is not None:
            return directory, git
    return None


def _elsewhere(link: Path) -> Path | None:
    found = files.read(link, _GITDIR_LIMIT)
    if found is None or found.data is None or not found.data.startswith(_GITDIR):
        return None
    target = os.fsdecode(found.data.removeprefix(_GITDIR).strip())
    return None if not target or "\0" in target else Path(os.path.normpath(link.parent / target))


def _tracks(git: Path, below: Path) -> bool:
    if files.names_in(git, lambda name: name.startswith("sharedindex.")).names:
        return True
    try:
        with open_plain(git / "index") as index:
            header = index.read(8)
            version = int.from_bytes(header[4:8], "big")
            if header[:4] != b"DIRC" or version not in {2, 3} or os.fstat(index.fileno()).st_size > _INDEX_LIMIT:
                return True
            return _contains(iter(lambda: index.read(_CHUNK), b""), os.fsencode(below.as_posix()) + b"/")
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
