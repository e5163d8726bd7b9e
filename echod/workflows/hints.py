"""Where a change may mean that a workflow began or ended: directories worth watching. Hints only; the disk decides."""

from __future__ import annotations

import os
from pathlib import Path

from echod.workflows import files as reading
from echod.workflows.markers import checkpoints

# The places where markers appear; each is watched by itself, not with what lies below it.
_PLACES = (
    "tmp",
    "tmp/.rune-signals",
    "tmp/.rune-locks",
    "tmp/arc",
    ".rune",
    ".rune/arc",
    ".rune/audit-state",
    ".claude",
    ".claude/arc",
)
_NEWEST = 4


def marker_directories(project: Path) -> tuple[Path, ...]:
    """The directories to watch, each non-recursively, in name order.

    A place that does not exist yet is stood for by its nearest existing ancestor in the project: ask again when that
    one changes. Of pipelines, teams and locks the newest few are included; what is missed is found by asking again.
    """
    root = Path(os.path.realpath(project))
    places = {_nearest(root / place, root) for place in _PLACES}
    for place in (*checkpoints.ROOTS, "tmp/.rune-signals", "tmp/.rune-locks"):
        places |= set(_newest_below(root / place, root))
    return tuple(sorted(places))


def _nearest(path: Path, root: Path) -> Path:
    """The deepest directory on the way to `path` before anything that is absent, a link or no directory."""
    nearest = root
    for part in path.relative_to(root).parts:
        if not reading.is_directory(nearest / part):
            break
        nearest /= part
    return nearest


def _newest_below(base: Path, root: Path) -> tuple[Path, ...]:
    if _nearest(base, root) != base:
        return ()
    names = reading.names_in(base, lambda name: not name.startswith(".")).names
    below = (path for path in (base / name for name in names) if reading.is_directory(path))
    return reading.newest(below, _NEWEST)
