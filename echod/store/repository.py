"""What git says about a memory file, read from its files without running it: is it tracked, at which commit, as staged?

A branch switch, a checkout, a stash or a pull is a person's doing, and what it takes out stays out.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

_MAX_INDEX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Tracking:
    """A repository that tracks a file.

    Attributes:
        head: what HEAD stands for: a commit, or the name of a branch without one.
        index: the raw index, to look contents up in.
    """

    head: str
    index: bytes

    def holds(self, data: bytes) -> bool:
        """Whether the index names exactly this content: git itself put it there, or somebody staged it."""
        header = b"blob %d\0" % len(data)
        return any(hashlib.new(kind, header + data).digest() in self.index for kind in ("sha1", "sha256"))


def tracking(project: Path, file: Path) -> Tracking | None:
    """The repository around `project`, if it tracks `file`. Unreadable parts count as not tracked."""
    try:
        for root in (project, *project.parents):
            if (root / ".git").exists():
                return _tracked(_git_dir(root), file.relative_to(root))
    except (OSError, ValueError):
        return None
    return None


def _tracked(git: Path, file: Path) -> Tracking | None:
    index = git / "index"
    if index.stat().st_size > _MAX_INDEX_BYTES:
        return None
    listed = index.read_bytes()
    # Version 4 of the index shortens paths by what they share with the one before, so only the name can be looked for.
    name = file.name.encode() if listed[4:8] == b"\0\0\0\4" else str(file).encode()
    return Tracking(_head(git), listed) if name in listed else None


def _git_dir(root: Path) -> Path:
    git = root / ".git"
    if git.is_dir():
        return git
    pointer = git.read_text().partition("gitdir:")[2].strip()  # a worktree or submodule
    return (root / pointer).resolve()


def _head(git: Path) -> str:
    head = (git / "HEAD").read_text().strip()
    ref = head.removeprefix("ref:").strip()
    if ref == head:
        return head
    common = git / "commondir"
    shared = (git / common.read_text().strip()).resolve() if common.exists() else git
    for base in (git, shared):
        if (base / ref).is_file():
            return f"{ref} {(base / ref).read_text().strip()}"
    packed = shared / "packed-refs"
    if packed.is_file():
        for line in packed.read_text().splitlines():
            if line.endswith(f" {ref}"):
                return f"{ref} {line.partition(' ')[0]}"
    return ref
