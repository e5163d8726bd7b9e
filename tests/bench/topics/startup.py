"""How long the real service takes from its start until it has looked at every project, up to a thousand of them."""

from __future__ import annotations

import time

from tests.bench.figures import Curve, Figures, Row
from tests.bench.household import ResourceUsage, add_bench_project, make_bench_home
from tests.bench.workspace import Workspace
from tests.support import running_daemon

_PROJECTS = (30, 150, 1_000)


def measure(space: Workspace) -> Figures:
    """Wall-clock time and memory at each size; the same home grows. The first heartbeat follows the first look."""
    home = make_bench_home(space, 0)
    points, rows, made = [], [], 0
    for count in _PROJECTS:
        while made < count:
            add_bench_project(home, space.disk / "projects" / f"p{made}")
            made += 1
        began = time.perf_counter()
        with running_daemon(home, seconds=120) as running:
            points.append((count, time.perf_counter() - began))
            use = ResourceUsage.measure(running.process.pid)
            assert running.stop() == 0, running.log.read_text()
        rows.append(Row(f"resident memory with {count:,} projects", use.memory_mib, "MiB"))
        rows.append(Row(f"threads with {count:,} projects", use.threads, ""))
    return Figures(tuple(rows), (Curve("from start until every project was looked at", "projects", tuple(points)),))
