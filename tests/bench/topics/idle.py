"""What the service costs while nothing happens: processor, memory, disk."""

from __future__ import annotations

import time

from echod.runtime.heartbeat import write_wake_file
from tests.bench.figures import Comparison, Figures, Row, Threshold, below, row
from tests.bench.household import (
    ROLES,
    BenchHome,
    ResourceUsage,
    add_job_history,
    idle_daemon,
    make_bench_home,
    make_globbed_home,
    wait_until_idle,
)
from tests.bench.workspace import Workspace

_PROJECTS = 100
_SPANS, _SPAN_SECONDS = 2, 10.0


def measure(space: Workspace) -> Figures:
    """Measure an idle service whose projects are registered, and one whose projects a settings file names by a glob."""
    registered = make_bench_home(space, _PROJECTS)
    add_job_history(registered)
    globbed_space = space.below("globbed")
    globbed = make_globbed_home(globbed_space, _PROJECTS)
    add_job_history(globbed, sorted((globbed_space.disk / "projects").iterdir()))
    return Figures(
        (
            *_measure_idle(registered, f"idle, {_PROJECTS} projects x {len(ROLES)} roles"),
            *_measure_idle(globbed, f"idle, {_PROJECTS} projects x {len(ROLES)} roles named by one glob"),
        )
    )


def _measure_idle(home: BenchHome, what: str) -> tuple[Row, ...]:
    """Measure spans without an event, then one look at everything, as it happens every ten minutes."""
    with idle_daemon(home) as running:
        pid = running.process.pid
        first = ResourceUsage.measure(pid)
        shares, before, began = [], first, time.monotonic()
        for _ in range(_SPANS):
            time.sleep(_SPAN_SECONDS)
            now, at = ResourceUsage.measure(pid), time.monotonic()
            shares.append(100 * (now.cpu_seconds - before.cpu_seconds) / (at - began))
            before, began = now, at
        write_wake_file(home.runtime / "canary/wake", "look")
        wait_until_idle(running)
        look = ResourceUsage.measure(pid).cpu_seconds - before.cpu_seconds
    written = before.written_bytes - first.written_bytes
    return (
        row(f"{what}: CPU", shares, "%", bar=below(0.1), note=f"{_SPANS} spans of {_SPAN_SECONDS:g} s"),
        Row(f"{what}: resident memory", before.memory_mib, "MiB", bar=below(64), note=f"peak {before.peak_mib:.1f}"),
        Row(f"{what}: written to the disk", written, "bytes", bar=Threshold(Comparison.AT_MOST, 0)),
        Row(f"{what}: a look at everything", look, "s", note="of CPU, every ten minutes"),
        Row(f"{what}: until idle", first.cpu_seconds, "s", note="of CPU, from the start"),
        Row(f"{what}: threads", before.threads, ""),
        Row(f"{what}: descriptors", before.descriptors, ""),
    )
