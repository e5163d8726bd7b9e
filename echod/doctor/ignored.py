"""Does a project's `.gitignore` name its memory? Git is not asked: it would run what a repository configures."""

from __future__ import annotations

from pathlib import Path

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
        if file.is_symlink() or not file.is_file() or file.stat().st_size > _LARGEST_BYTES:
            return []
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
