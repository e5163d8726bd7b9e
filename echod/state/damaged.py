"""The damaged databases that `rescue` moved aside."""

from __future__ import annotations

from pathlib import Path
from typing import Final

SUFFIXES: Final = ("", "-wal", "-shm")
"""The files of a database."""


def damaged_copies(path: Path) -> tuple[Path, ...]:
    """The databases that were moved aside, oldest first; a person may look at them and delete them."""
    return tuple(
        sorted(copy for copy in path.parent.glob(f"{path.name}.damaged-*") if not copy.name.endswith(SUFFIXES[1:]))
    )
