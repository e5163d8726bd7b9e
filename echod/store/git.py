"""Read git's own files, without running git, to see how a repository tracks a memory file.

The result has the commit that is checked out and the index, which shows the staged content.

A branch switch, a checkout, a stash or a pull is the user's doing, and the entries that it removes remain removed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from echod.files import read_regular
from echod.lazy import lazy_imports, lazy_pattern
from echod.paths import MAX_PATH_LENGTH

with lazy_imports(__name__):
    import hashlib

_MAX_INDEX_BYTES = 64 * 1024 * 1024
_MAX_POINTER_BYTES = 2 * MAX_PATH_LENGTH
_REF = lazy_pattern(r"refs/[^\x00-\x20\x7f~^:?*\[\\]{1,1000}")
_COMMIT = lazy_pattern(r"[0-9a-f]{40,64}")


class TrackedFile(NamedTuple):
    """A file that a git repository tracks."""

    head: str
    """The commit of HEAD, after a digest of the branch's name if there is a branch."""
    raw_index: bytes
    """The raw index, in which contents are looked up."""

    def is_staged_as(self, data: bytes) -> bool:
        """Return whether the index names exactly this content, because git wrote the file or the user staged it."""
        header = b"blob %d\0" % len(data)
        return any(_hashlib().new(kind, header + data).digest() in self.raw_index for kind in ("sha1", "sha256"))


def find_tracked_file(project: Path, file: Path) -> TrackedFile | None:
    """Return `file` as tracked by the repository around `project`, or None. Unreadable parts count as not tracked."""
    try:
        for root in (project, *project.parents):
            if (root / ".git").exists():
                return _read_tracked_file(_git_dir(root), file.relative_to(root))
    except (OSError, ValueError, RuntimeError):  # the last one: links that form a loop
        return None
    return None


def read_commit(root: Path) -> str | None:
    """Return the commit that is checked out in the repository at `root`; None without one, or if it is unreadable."""
    try:
        head = _read_head(_git_dir(root)) if (root / ".git").exists() else None
    except (OSError, ValueError):
        return None
    return None if head is None else head.commit or None


def _read_tracked_file(git: Path, file: Path) -> TrackedFile | None:
    index = read_regular(git / "index", _MAX_INDEX_BYTES)
    # Version 4 of the index omits the part of a path that it shares with the previous one. Only the name is searched.
    name = file.name.encode() if index[4:8] == b"\0\0\0\4" else str(file).encode()
    return TrackedFile(_read_head(git).described(), index) if name in index else None


def _git_dir(root: Path) -> Path:
    git = root / ".git"
    if git.is_dir():
        return git
    pointer = _read_text(git).partition("gitdir:")[2].strip()  # a worktree or submodule
    return Path(os.path.realpath(root / pointer))


def _hashlib() -> ModuleType:
    return hashlib


class _Head(NamedTuple):
    """The branch that is checked out and its commit; "" for none."""

    ref: str
    commit: str

    def described(self) -> str:
        """Return the commit, after a digest of the branch, since its name may contain a secret."""
        if not self.ref:
            return self.commit
        branch = _hashlib().sha256(self.ref.encode(errors="surrogateescape")).hexdigest()[:16]
        return f"{branch} {self.commit}" if self.commit else branch


def _read_head(git: Path) -> _Head:
    head = _read_text(git / "HEAD")
    ref = head.removeprefix("ref:").strip()
    if ref == head or not _REF.fullmatch(ref) or ".." in ref:
        return _Head("", _valid_commit(head))  # a name that git gives to no branch leads nowhere
    common = git / "commondir"
    shared = Path(os.path.realpath(git / _read_text(common))) if common.exists() else git
    for base in (git, shared):
        if (base / ref).is_file():
            return _Head(ref, _valid_commit(_read_text(base / ref)))
    packed = shared / "packed-refs"
    if packed.is_file():
        # Searched as a whole: a list of its lines could take a hundred times its size.
        pattern = rb"^([0-9a-f]{40,64}) %b$" % re.escape(os.fsencode(ref))
        if line := re.search(pattern, read_regular(packed, _MAX_INDEX_BYTES), re.MULTILINE):
            return _Head(ref, line[1].decode())
    return _Head(ref, "")


def _read_text(file: Path) -> str:
    return read_regular(file, _MAX_POINTER_BYTES).decode().strip()


def _valid_commit(text: str) -> str:
    """Return a commit's name, which is stored in the journal, or an empty string for any other content."""
    return text if _COMMIT.fullmatch(text) else ""
