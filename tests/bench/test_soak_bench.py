"""What the service costs: idle with a hundred projects, in a storm of writes, and when it comes and goes.

`ECHOD_SOAK_SECONDS` (60), `ECHOD_SOAK_WRITES` (10,000) and `ECHOD_SOAK_CYCLES` (20) make it longer or shorter.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from echod.daemon.wake import wake
from echod.projects import Projects
from tests.support import Daemon, Home, daemon, finding, project, start, until

pytestmark = [
    pytest.mark.bench,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

PROJECTS = 100
ROLES = ("planner", "workers", "reviewer", "auditor", "team", "orchestrator")
SECONDS = float(os.environ.get("ECHOD_SOAK_SECONDS", "60"))
WRITES = int(os.environ.get("ECHOD_SOAK_WRITES", "10000"))
CYCLES = int(os.environ.get("ECHOD_SOAK_CYCLES", "20"))

LONG_AGO = 1_700_000_000.0

CPU_BAR_PERCENT = 0.1
MEMORY_BAR_MIB = 64

USUAL = {"ECHOD_QUIET_SECONDS": "30", "ECHOD_DEBOUNCE_SECONDS": "2", "ECHOD_DEBOUNCE_MAX_SECONDS": "20"}


@dataclass(frozen=True)
class Use:
    """What a process has used so far."""

    cpu_seconds: float
    memory_mib: float
    peak_mib: float
    threads: int
    descriptors: int
    written_bytes: int

    @classmethod
    def of(cls, pid: int) -> Use:
        proc = Path(f"/proc/{pid}")
        ticks = proc.joinpath("stat").read_text().rpartition(")")[2].split()[11:13]
        status = dict(line.split(":", 1) for line in proc.joinpath("status").read_text().splitlines())
        io = dict(line.split(": ") for line in proc.joinpath("io").read_text().splitlines())
        return cls(
            cpu_seconds=sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"),
            memory_mib=int(status["VmRSS"].split()[0]) / 1024,
            peak_mib=int(status["VmHWM"].split()[0]) / 1024,
            threads=int(status["Threads"]),
            descriptors=len(list(proc.joinpath("fd").iterdir())),
            written_bytes=int(io["write_bytes"]),
        )


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """As on a user's machine, the runtime directory is in memory."""
    root = tmp_path / "home"
    root.mkdir()
    runtime = Path(tempfile.mkdtemp(prefix="echod-soak-", dir="/dev/shm"))
    (root / "run").symlink_to(runtime)
    yield Home(root, USUAL)
    shutil.rmtree(runtime)


def many_projects(home: Home, root: Path) -> None:
    """Registered, each with six roles and a memory."""
    home.state.mkdir(mode=0o700)
    for number in range(PROJECTS):
        made = project(root / f"p{number}", *ROLES)
        (made / "tmp").mkdir()
        for role in ROLES:
            entries = [finding(f"Lesson {n} of {role}") for n in range(10)]
            memory = made / f".rune/echoes/{role}/MEMORY.md"
            memory.write_text(f"# {role.title()} Memory\n\n" + "\n".join(entries))
            os.utime(memory, (LONG_AGO, LONG_AGO))  # a memory of just now would keep its gate from being idle
        Projects(home.state / "projects").add(made)


def settled(running: Daemon) -> None:
    """Wait until the first look at everything is over: two seconds almost without work."""
    before = Use.of(running.process.pid).cpu_seconds

    def still() -> bool:
        nonlocal before
        time.sleep(2)  # the span over which it is judged
        now = Use.of(running.process.pid).cpu_seconds
        calm, before = now - before <= 0.02, now
        return calm

    until(still, "the service to become idle", seconds=120)


def test_idle(home: Home, tmp_path: Path) -> None:
    many_projects(home, tmp_path / "projects")
    with daemon(home) as running:
        settled(running)
        before, began = Use.of(running.process.pid), time.monotonic()
        time.sleep(SECONDS)
        after, seconds = Use.of(running.process.pid), time.monotonic() - began
        assert home.echod("status").returncode == 0
        asleep = Use.of(running.process.pid)
        wake(home.root / "run/canary/wake", "look")
        settled(running)
        look = Use.of(running.process.pid).cpu_seconds - asleep.cpu_seconds

    cpu = 100 * (after.cpu_seconds - before.cpu_seconds) / seconds
    print(
        f"\nidle, {PROJECTS} projects x {len(ROLES)} roles, {seconds:.0f} s: CPU {cpu:.3f} % (bar {CPU_BAR_PERCENT} %), "
        f"RSS {after.memory_mib:.1f} MiB (bar {MEMORY_BAR_MIB} MiB, peak {after.peak_mib:.1f}), "
        f"{after.threads} threads, {after.descriptors} descriptors, "
        f"{after.written_bytes - before.written_bytes} bytes to disk (bar 0); "
        f"until idle {before.cpu_seconds:.1f} s of CPU; a look at everything {look:.2f} s, every ten minutes"
    )


class Pending(threading.Thread):
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


def test_storm(home: Home, tmp_path: Path) -> None:
    root = project(tmp_path / "p", *ROLES)
    quick = Home(home.root, {})
    quick.done("add", root)
    with daemon(quick) as running:
        before = Use.of(running.process.pid)
        pending = Pending(quick.state / "echod.db")
        pending.start()
        began = time.monotonic()
        for number in range(WRITES):
            role = root / ".rune/echoes" / ROLES[number % len(ROLES)]
            (role / f"agent{number}-findings.md").write_text(finding(f"Storm {number}"))
        written = time.monotonic() - began
        until(lambda: not list(root.glob(".rune/echoes/*/*-findings.md")), "all to be merged", seconds=900)
        merged = time.monotonic() - began
        pending.stop()
        after = Use.of(running.process.pid)

    found = [
        line
        for memory in root.glob(".rune/echoes/*/MEMORY.md")
        for line in memory.read_text().splitlines()
        if line.startswith("### [")
    ]
    assert len(found) == len(set(found)) == WRITES
    assert pending.most <= 1
    print(
        f"\nstorm, {WRITES:,} files in one store: written in {written:.1f} s, all merged {merged - written:.1f} s later; "
        f"at most {pending.most} pending job a role ({pending.looks} looks); "
        f"CPU {after.cpu_seconds - before.cpu_seconds:.1f} s, peak RSS {after.peak_mib:.0f} MiB, "
        f"{(after.written_bytes - before.written_bytes) / 1e6:.0f} MB to disk, {after.descriptors} descriptors"
    )


def test_cycles(home: Home, tmp_path: Path) -> None:
    home.done("add", project(tmp_path / "p", *ROLES))
    ups, downs = [], []
    for _ in range(CYCLES):
        began = time.monotonic()
        running = start(home)
        up = time.monotonic()
        assert running.stop() == 0
        ups.append(up - began)
        downs.append(time.monotonic() - up)

    left = [path.name for path in home.state.rglob("*") if path.is_file()]
    print(
        f"\n{CYCLES} cycles: up in {statistics.median(ups):.2f} s (worst {max(ups):.2f}), "
        f"down in {statistics.median(downs):.2f} s (worst {max(downs):.2f}, bar 2); {len(left)} files in the state directory"
    )
