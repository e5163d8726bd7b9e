"""Real and labelled files, where there are any: `MEMORY_CORPUS` names their directory."""

from __future__ import annotations

import os
from pathlib import Path


def corpus() -> Path | None:
    """Return the corpus, or None without one; topics that need it are then not measured."""
    root = os.environ.get("MEMORY_CORPUS")
    return Path(root) if root and Path(root).is_dir() else None
