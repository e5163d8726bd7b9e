"""Does a project's `.gitignore` name its memory? Git is not asked: it would run what a repository configures."""

from __future__ import annotations

from pathlib import Path

from echod.plain_file import read_plain
from echod.store.layout import Store

_LARGEST_BYTES = 1024 * 1024


def ignored_by(store: Store) -> str | None:
    """The line of the project's own `.gitignore` that names the store or a directory above it, if there is one.

    Patterns with wildcards are not understood; neither are the files of other directories and of the user.
    """
    below = store.root.relative_to(store.project)
    names = {part.as_posix() for part in (below, *below.parents) if part != Path()}
    for line in _lines(store.project / ".gitignore"):
        if line.strip().strip("/") in names:
            return line.strip()
    return None


def _lines(file: Path) -> list[str]:
    try:
        return [] if file.is_symlink() else read_plain(file, _LARGEST_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return []
