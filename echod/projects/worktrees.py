"""Find the project that a temporary copy of it belongs to. Reads git's files and never runs git.

Agents work in copies of a project: linked git worktrees, and those below `.claude/worktrees/`. Their findings belong to
the project itself, since the copy is deleted afterwards.
"""

from __future__ import annotations

import os
from pathlib import Path

from echod.files import open_regular
from echod.paths import MAX_PATH_LENGTH

_CLAUDE_WORKTREES = (".claude", "worktrees")
_MAX_POINTER_BYTES = 2 * MAX_PATH_LENGTH


def main_worktree_path(directory: Path) -> Path:
    """Return the same directory in the project that `directory` is a copy of; itself, resolved, if it is not in a copy.

    Neither needs to exist: a copy may be deleted before its events are read. A copy of a repository without a main
    working tree (a bare one) belongs to no other project.

    Raises:
        OSError, ValueError: `directory` is not a path that any file system could have.
    """
    current = Path(os.path.realpath(directory))
    visited = {current}
    while (origin := _containing_project_path(current)) not in visited:
        visited.add(origin)
        current = origin
    return current


def _containing_project_path(directory: Path) -> Path:
    project_path = _strip_claude_worktree(directory)
    if project_path is not None:
        return project_path
    for root in (directory, *directory.parents):
        main = _main_worktree(root)
        if main is not None:
            return main / directory.relative_to(root)
        if (root / ".git").is_dir():
            break
    return directory


def _strip_claude_worktree(directory: Path) -> Path | None:
    """Return `project/sub` for `project/.claude/worktrees/name/sub`, and None for any other path."""
    parts = directory.parts
    for index in range(1, len(parts) - 2):
        if parts[index : index + 2] == _CLAUDE_WORKTREES:
            return Path(*parts[:index], *parts[index + 3 :])
    return None


def _main_worktree(root: Path) -> Path | None:
    """Return the main working tree of the repository that `root` is a linked worktree of; None if it is not one."""
    pointer = _read_pointer(root / ".git")
    if pointer is None or not pointer.startswith("gitdir:"):
        return None
    git = _resolve_pointer(root, pointer.removeprefix("gitdir:").strip())
    commondir = _read_pointer(git / "commondir")
    if commondir is None:
        return None  # a submodule, or a repository that was moved: a project of its own
    common_directory = _resolve_pointer(git, commondir.strip())
    # The repository must list this copy too: the pointer alone could be forged by the author of the directory.
    back_pointer = _read_pointer(git / "gitdir")
    if back_pointer is None or _resolve_pointer(git, back_pointer.strip()) != root / ".git":
        return None
    own = git.parent == common_directory / "worktrees" and common_directory.name == ".git"
    return common_directory.parent if own else None


def _resolve_pointer(base: Path, pointer: str) -> Path:
    return Path(os.path.realpath(base / pointer))


def _read_pointer(path: Path) -> str | None:
    """Return the text of a small plain file; None if it cannot be read, or names no path that a system could open."""
    try:
        with open_regular(path) as file:
            text = file.read(_MAX_POINTER_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    return None if "\0" in text or len(text) > MAX_PATH_LENGTH else text
