"""Leaving a small file in the runtime directory for commands to read: whole or not at all, and private.

Not synced to the disk: what a crash loses here was worth nothing.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from echod.paths import PRIVATE_DIR, PRIVATE_FILE


def leave(path: Path, text: str) -> None:
    """Replace the file at `path` by `text`.

    Raises:
        OSError: the runtime directory is gone or full.
    """
    path.parent.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)  # some sweep runtime directories
    stage = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(stage, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        stage.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            stage.unlink()
        raise
