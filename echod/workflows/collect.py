"""One look at a project's disk: every family of markers, the memory files, the editors. Reads only; decides nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from echod.workflows import declared as announced
from echod.workflows import files as reading
from echod.workflows.markers import checkpoints, git, locks, loops, sessions, signals, state_files
from echod.workflows.markers import edits as store_files
from echod.workflows.model import DeclaredWorkflow, Observations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from echod.workflows.processes import Processes


def observe(
    project: Path,
    stores: Sequence[Path],
    *,
    claude_home: Path | None,
    processes: Processes,
    changed_since: float,
    own_write: Callable[[Path], int | None],
    declared: Sequence[DeclaredWorkflow],
    last_ended: float | None,
) -> Observations:
    """What can be seen of a project now.

    Args:
        project: its root.
        stores: its stores' directories, absolute.
        claude_home: Claude Code's directory, None to leave its sessions out.
        processes: the table of processes.
        changed_since: memory files that changed before (Unix seconds) are not told.
        own_write: for a file that echod wrote last, the modification time (nanoseconds) it left on it.
        declared: workflows that were announced for this project and not ended.
        last_ended: when a workflow of this project was last known to end (Unix seconds).
    """
    root = Path(os.path.realpath(project))
    arcs, unlisted = checkpoints.read(root, processes)
    waiting, teams = signals.read(root)
    markers = (
        *announced.read(declared, processes),
        *state_files.read(root, teams, processes),
        *loops.read(root, arcs, processes),
        *(arc.marker for arc in arcs.values()),
        *unlisted,
        *locks.read(root, processes),
        *waiting,
        *(sessions.read(claude_home, root, processes) if claude_home else ()),
        *git.read(root, stores),
    )
    changes, editors = store_files.read(root, stores, changed_since, own_write, processes)
    return Observations(markers, changes, editors, last_ended, _unseen(root))


def _unseen(root: Path) -> tuple[tuple[str, str], ...]:
    if not reading.is_link(root / "tmp"):
        return ()
    text = (
        "tmp is a symbolic link and echod does not look behind it, so it cannot see most workflows here; "
        "announce them with echod workflow begin"
    )
    return (("tmp", text),)
