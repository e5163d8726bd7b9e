"""To which project does a directory belong, if it is a throw-away copy of one? Reads git's files, never runs git.

Agents work in copies of a project: linked git worktrees, and those under `.claude/worktrees/`. What they learn
belongs to the project itself, since the copy is deleted afterwards.
"""

from __future__ import annotations

import os
from pathlib import Path

from echod.files import open_plain

_COPIES = (".claude", "worktrees")
_LONGEST_POINTER = 64 * 1024


def original(directory: Path) -> Path:
    """The same directory in the project that `directory` is a copy of; itself, resolved, if it is in no copy.

    Neither needs to exist: a copy may be gone by the time its events are read. A copy of a repository that has no
    main working tree (a bare one) belongs to nothing else and is its own original.

    Raises:
        OSError, ValueError: `directory` is no path that any file system could have.
    """
    here = Path(os.path.realpath(directory))
    seen = {here}
    while (there := _outside(here)) not in seen:
        seen.add(there)
        here = there
    return here


def _outside(here: Path) -> Path:
    named = _named_copy(here)
    if named is not None:
        return named
    for root in (here, *here.parents):
        main = _main_of(root)
        if main is not None:
            return main / here.relative_to(root)
        if (root / ".git").is_dir():
            break
    return here


def _named_copy(here: Path) -> Path | None:
    """`project/sub` for `project/.claude/worktrees/name/sub`."""
    parts = here.parts
    for at in range(1, len(parts) - 2):
        if parts[at : at + 2] == _COPIES:
            return Path(*parts[:at], *parts[at + 3 :])
    return None


def _main_of(root: Path) -> Path | None:
    """The main working tree of the repository that `root` is a linked worktree of; None if it is none."""
    pointer = _read(root / ".git")
    if pointer is None or not pointer.startswith("gitdir:"):
        return None
    git = _absolute(root, pointer.removeprefix("gitdir:").strip())
    common = _read(git / "commondir")
    if common is None:
        return None  # a submodule, or a repository that was moved elsewhere: a project of its own
    shared = _absolute(git, common.strip())
    # The repository must know this copy too: a pointer alone could be put anywhere by whoever made the directory.
    known = _read(git / "gitdir")
    if git.parent != shared / "worktrees" or known is None or _absolute(git, known.strip()) != root / ".git":
        return None
    return shared.parent if shared.name == ".git" else None


def _absolute(base: Path, named: str) -> Path:
    return Path(os.path.realpath(base / named))


def _read(path: Path) -> str | None:
    """The text of a small plain file; None if there is none to be read."""
    try:
        with open_plain(path) as file:
            text = file.read(_LONGEST_POINTER).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    return None if "\0" in text else text  # which names no path
