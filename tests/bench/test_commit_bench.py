"""How long a commit takes: 150 entries in the memory, one finding comes in, everything durable."""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import quantiles

import pytest

from echod.store.limits import EngineLimits
from tests.torture.entries import entry
from tests.torture.service import Arena, plan

ENTRIES = 150
ROUNDS = 100


def _measure(base: Path) -> dict[str, list[float]]:
    """Milliseconds of reading, of the commit, and of the following settling of debts."""
    arena = Arena(base)
    arena.found(*(entry(f"w{number}") for number in range(ENTRIES)))
    engine = arena.engine(EngineLimits(displaced_hours=0.0))
    took: dict[str, list[float]] = {"open and read": [], "commit": [], "merge late bytes and close": []}
    for number in range(ROUNDS):
        (arena.role.path / "a-findings.md").write_bytes(entry(f"f{number % 3}x{number}"))
        start = time.perf_counter()
        with engine.open_role(arena.role) as session:
            view = session.read()
            read = time.perf_counter()
            changes = plan(view, keep=10_000, batch=1)
            planned = time.perf_counter()
            session.commit(number, changes)
            committed = time.perf_counter()
        again = time.perf_counter()
        engine.settle_debts(arena.store)
        settled = time.perf_counter()
        for name, seconds in zip(took, (read - start, committed - planned, settled - again), strict=True):
            took[name].append(seconds * 1000)
    return took


def _row(name: str, values: list[float]) -> str:
    cuts = quantiles(values, n=20)
    return f"{name:34}{cuts[9]:9.1f}{cuts[18]:9.1f}"


@pytest.mark.bench
def test_commit(tmp_path: Path) -> None:
    print(f"\n{f'{ENTRIES} entries, one finding':34}{'p50 ms':>9}{'p95 ms':>9}")
    places = {"disk": tmp_path / "arena"}
    if os.access("/dev/shm", os.W_OK):
        places["memory"] = Path(f"/dev/shm/echod-bench-{os.getpid()}")
    for name, base in places.items():
        took = _measure(base)
        for step, values in took.items():
            print(_row(f"{step}, {name}", values))
        assert all(len(values) == ROUNDS for values in took.values())
