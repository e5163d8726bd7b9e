"""Ten thousand findings files appear in one store at once: how the service bears it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from pathlib import Path

from tests.bench.figures import Comparison, Figures, Row, Threshold, none
from tests.bench.household import ROLES, ResourceUsage, make_bench_home
from tests.bench.workspace import Workspace
from tests.support import finding_text, make_project, running_daemon, until

_WRITES = 10_000
_PATIENCE_SECONDS = 240
_SETTINGS = {
    "ECHOD_QUIET_SECONDS": "0",
    "ECHOD_DEBOUNCE_SECONDS": "0.05",
    "ECHOD_DEBOUNCE_MAX_SECONDS": "0.5",
    "ECHOD_MEMORY_LINE_LIMIT": "100000",
}


def measure(space: Workspace) -> Figures:
    """Every file is merged, once; at most one job waits for each role, whenever one looks."""
    home = make_bench_home(space, 0, _SETTINGS)
    root = make_project(space.disk / "project", *ROLES)
    home.run("add", root)
    with running_daemon(home) as running:
        before = ResourceUsage.measure(running.process.pid)
        pending = _PendingJobsSampler(home.state / "echod.db")
        pending.start()
        began = time.monotonic()
        for number in range(_WRITES):
            role = root / ".rune/echoes" / ROLES[number % len(ROLES)]
            (role / f"agent{number}-findings.md").write_text(finding_text(f"Storm {number}"))
        written = time.monotonic() - began
        until(lambda: not _has_findings(root), "all findings to be merged", seconds=_PATIENCE_SECONDS)
        merged = time.monotonic() - began
        pending.stop()
        after = ResourceUsage.measure(running.process.pid)
    merged_once = Counter(_titles(root))
    missing = _WRITES - len(merged_once)
    twice = sum(count > 1 for count in merged_once.values())
    what = f"storm of {_WRITES:,} findings files"
    return Figures(
        (
            Row(
                f"{what}: pending jobs a role, at most",
                pending.most,
                "",
                bar=Threshold(Comparison.AT_MOST, 1, proof=True),
                note=f"looked at {pending.looks:,} times",
            ),
            Row(f"{what}: findings that are missing", missing, "", bar=none()),
            Row(f"{what}: findings that stand twice", twice, "", bar=none()),
            Row(f"{what}: until all are merged", merged, "s", note=f"written within {written:.1f} s"),
            Row(f"{what}: CPU", after.cpu_seconds - before.cpu_seconds, "s"),
            Row(f"{what}: peak memory", after.peak_mib, "MiB"),
            Row(f"{what}: written to the disk", (after.written_bytes - before.written_bytes) / 1e6, "MB"),
        )
    )


def _has_findings(root: Path) -> bool:
    return any(
        file.name.endswith("-findings.md") for role in ROLES for file in (root / ".rune/echoes" / role).iterdir()
    )


def _titles(root: Path) -> list[str]:
    return [
        line
        for memory in root.glob(".rune/echoes/*/MEMORY.md")
        for line in memory.read_text().splitlines()
        if line.startswith("### [")
    ]


class _PendingJobsSampler(threading.Thread):
    """Counts, again and again, the pending jobs that one role has at most."""

    def __init__(self, database: Path) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self.looks = 0
        self._database = database
        self._stop_now = threading.Event()

    def run(self) -> None:
        link = sqlite3.connect(f"{self._database.as_uri()}?mode=ro", uri=True, timeout=5)
        while not self._stop_now.wait(0.02):
            found = link.execute(
                "SELECT count(*) FROM job WHERE state IN ('queued', 'deferred') GROUP BY kind, store, role"
            ).fetchall()
            self.most = max([self.most, *(row[0] for row in found)])
            self.looks += 1
        link.close()

    def stop(self) -> None:
        self._stop_now.set()
        self.join()
