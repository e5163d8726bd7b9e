"""From a finding that may be folded in to the memory that agents read: the real service, files on the disk."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from tests.bench.figures import Figures, Row, below, quartiles, row
from tests.bench.household import add_bench_project, idle_daemon, make_bench_home, seconds_until
from tests.bench.reference import rounds
from tests.bench.workspace import Workspace
from tests.support import finding_text

_ROUNDS, _SECONDS = 60, 40.0
_LEARNINGS = 150
_DEBOUNCE = 0.1
_SETTINGS = {
    "ECHOD_QUIET_SECONDS": "0",
    "ECHOD_DEBOUNCE_SECONDS": str(_DEBOUNCE),
    "ECHOD_DEBOUNCE_MAX_SECONDS": "5",
    "ECHOD_MEMORY_LINE_LIMIT": "100000",
}
_BAR_MS = 150


def measure(space: Workspace) -> Figures:
    """The time from a file's last byte until the memory file holds its learning, less the debounce."""
    home = make_bench_home(space, 0, _SETTINGS)
    root = add_bench_project(home, space.disk / "project")
    role = root / ".rune/echoes/reviewer"
    memory = role / "MEMORY.md"
    memory.write_text("# Reviewer Memory\n\n" + "\n".join(finding_text(f"Known {n}") for n in range(_LEARNINGS)))
    with idle_daemon(home):
        took = [_one(role, memory, number) for number in rounds(_ROUNDS, _SECONDS)]
    milliseconds = sorted((seconds - _DEBOUNCE) * 1000 for seconds in took)
    low, _, high = quartiles(milliseconds)
    p95 = milliseconds[int(len(milliseconds) * 0.95)]
    note = f"a memory of {_LEARNINGS} entries; the debounce of {_DEBOUNCE:g} s taken off"
    return Figures(
        (
            Row(
                "gate idle and debounce over until committed, p95",
                p95,
                "ms",
                low,
                high,
                len(took),
                below(_BAR_MS),
                note=note,
            ),
            row("the same, median", milliseconds, "ms"),
        )
    )


def _one(role: Path, memory: Path, number: int) -> float:
    time.sleep(0.25)  # the service has its afterthoughts; they are not part of this
    before = memory.stat().st_ino
    (role / f"agent{number}-findings.md").write_text(finding_text(f"Fresh {number}"))
    return seconds_until(partial(_replaced, memory, before), "the memory to be committed", 30)


def _replaced(memory: Path, before: int) -> bool:
    return memory.stat().st_ino != before
