"""How long the real service takes from its start until it answers, and until it has looked at every project."""

from __future__ import annotations

import time
from pathlib import Path

from echod.runtime.heartbeat import STARTUP_SECONDS, read_heartbeat
from tests.bench.figures import Curve, Figures, Row, below
from tests.bench.household import ResourceUsage, add_bench_project, make_bench_home
from tests.bench.workspace import Workspace
from tests.support import running_daemon, until

_PROJECTS = (30, 120, 480)
_SECONDS = 240


def measure(space: Workspace) -> Figures:
    """Wall-clock time and memory at each size; the same home grows, and what was there before was seen before."""
    home = make_bench_home(space, 0)
    points, rows, made = [], [], 0
    for count in _PROJECTS:
        while made < count:
            add_bench_project(home, space.disk / "projects" / f"p{made}")
            made += 1
        began = time.perf_counter()
        with running_daemon(home, seconds=120) as running:
            answers = time.perf_counter() - began
            until(lambda: _has_looked(home.runtime), "the end of the first look", _SECONDS)
            points.append((count, time.perf_counter() - began))
            use = ResourceUsage.measure(running.process.pid)
            assert running.stop() == 0, running.log.read_text()
        rows += [
            Row(f"start until the service answers, {count:,} projects", answers, "s", bar=below(STARTUP_SECONDS)),
            Row(f"resident memory with {count:,} projects", use.memory_mib, "MiB"),
            Row(f"threads with {count:,} projects", use.threads, ""),
        ]
    return Figures(tuple(rows), (Curve("from start until every project was looked at", "projects", tuple(points)),))


def _has_looked(runtime: Path) -> bool:
    heartbeat = read_heartbeat(runtime / "heartbeat.json")
    return heartbeat is not None and heartbeat.reconciled_at is not None
