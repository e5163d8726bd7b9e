"""How long a commit takes: 150 entries in the memory, one finding comes in, everything durable."""

from __future__ import annotations

import time
from pathlib import Path

from echod.store.errors import EngineLimits
from tests.bench.figures import Figures, Table, quartiles
from tests.bench.reference import rounds
from tests.bench.workspace import Workspace
from tests.torture.entries import entry
from tests.torture.service import StressProject, plan_changes

_ENTRIES = 150
_ROUNDS, _SECONDS = 100, 20.0


def measure(space: Workspace) -> Figures:
    """The steps of a commit by the engine alone, on the disk and in memory."""
    rows = [
        (f"{step}, {where}", *_percentiles(values))
        for where, base in (("disk", space.disk), ("memory", space.memory))
        for step, values in _steps(base / "arena").items()
    ]
    title = f"A commit: {_ENTRIES} entries, one finding comes in (up to {_ROUNDS} times)"
    return Figures(tables=(Table(title, ("step", "p50 ms", "p95 ms"), tuple(rows)),))


def _steps(base: Path) -> dict[str, list[float]]:
    """Milliseconds of reading, of the commit, and of the following settling of debts."""
    arena = StressProject(base)
    arena.create(*(entry(f"w{number}") for number in range(_ENTRIES)))
    engine = arena.engine(EngineLimits(displaced_hours=0.0))
    took: dict[str, list[float]] = {"open and read": [], "commit": [], "merge late bytes and close": []}
    for number in rounds(_ROUNDS, _SECONDS):
        (arena.role.path / "a-findings.md").write_bytes(entry(f"f{number % 3}x{number}"))
        start = time.perf_counter()
        with engine.open_role(arena.role) as session:
            view = session.read()
            read = time.perf_counter()
            changes = plan_changes(view, keep=10_000, batch=1)
            planned = time.perf_counter()
            session.commit(number, changes)
            committed = time.perf_counter()
        again = time.perf_counter()
        engine.merge_late_writes(arena.store)
        settled = time.perf_counter()
        for name, seconds in zip(took, (read - start, committed - planned, settled - again), strict=True):
            took[name].append(seconds * 1000)
    return took


def _percentiles(values: list[float]) -> tuple[float, float]:
    _, middle, _ = quartiles(values)
    return round(middle, 1), round(sorted(values)[int(len(values) * 0.95)], 1)
