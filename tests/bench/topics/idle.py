"""What the service costs while nothing happens: processor, memory, disk."""

from __future__ import annotations

import time

from echod.runtime.wake import wake
from tests.bench.figures import Bar, Figures, Row, Sign, below, row
from tests.bench.household import ROLES, Use, at_rest, give_a_past, household, settled
from tests.bench.workspace import Workspace

_PROJECTS = 100
_SPANS, _SPAN_SECONDS = 3, 10.0


def measure(space: Workspace) -> Figures:
    """Spans without an event; then what one look at everything costs, as it comes every ten minutes."""
    home = household(space, _PROJECTS)
    give_a_past(home)
    with at_rest(home) as running:
        pid = running.process.pid
        first = Use.of(pid)
        shares, before, began = [], first, time.monotonic()
        for _ in range(_SPANS):
            time.sleep(_SPAN_SECONDS)
            now, at = Use.of(pid), time.monotonic()
            shares.append(100 * (now.cpu_seconds - before.cpu_seconds) / (at - began))
            before, began = now, at
        wake(home.runtime / "canary/wake", "look")
        settled(running)
        look = Use.of(pid).cpu_seconds - before.cpu_seconds
    what = f"idle, {_PROJECTS} projects x {len(ROLES)} roles"
    written = before.written_bytes - first.written_bytes
    return Figures(
        (
            row(f"{what}: CPU", shares, "%", bar=below(0.1), note=f"{_SPANS} spans of {_SPAN_SECONDS:g} s"),
            Row(
                f"{what}: resident memory", before.memory_mib, "MiB", bar=below(64), note=f"peak {before.peak_mib:.1f}"
            ),
            Row(f"{what}: written to the disk", written, "bytes", bar=Bar(Sign.AT_MOST, 0)),
            Row(f"{what}: a look at everything", look, "s", note="of CPU, every ten minutes"),
            Row("until idle", first.cpu_seconds, "s", note="of CPU, from the start"),
            Row("threads", before.threads, ""),
            Row("descriptors", before.descriptors, ""),
        )
    )
