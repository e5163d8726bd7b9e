"""Faults of a running service: `echod status` reports each within half a minute, and none of them is final.

Every service here is a real process. Where nothing outside a process can bring the fault about, the process has it in
it: the service is started by a few lines that spoil one thing and then run `echod run` as everybody does.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from echod.daemon.events import CANARY_INTERVAL_SECONDS
from echod.daemon.events import CANARY_TIMEOUT_SECONDS as CANARY_SECONDS
from echod.daemon.status_publisher import STATUS_WRITE_SECONDS
from echod.runtime.heartbeat import HEARTBEAT_MAX_AGE_SECONDS, HEARTBEAT_SECONDS, WORKER_STALL_SECONDS, write_wake_file
from tests.support import Daemon, Home, finding_text, make_project, running_daemon, start_daemon, until

pytestmark = pytest.mark.timeout(300)

WITHIN_SECONDS = 30.0
"""The service's own intervals add up to half a minute, which one test checks. On a busy machine the tests wait longer."""

PATIENCE_SECONDS = 3 * WITHIN_SECONDS

WORKER_HANGS = """
import threading
from echod.jobs import consolidate
consolidate.run = lambda *_, **__: threading.Event().wait()
"""

JOB_DIES = """
from echod.jobs import consolidate
def run(*_, **__):
    raise ZeroDivisionError
consolidate.run = run
"""

EVENTS_STOP = """
from watchdog.observers.api import BaseObserver
def dispatch_events(self, queue):
    queue.get(block=True)
    raise SystemExit
BaseObserver.dispatch_events = dispatch_events
"""

EVENTS_STOP_ONCE = """
from watchdog.observers.api import BaseObserver
sound = BaseObserver.dispatch_events
def dispatch_events(self, queue):
    BaseObserver.dispatch_events = sound
    queue.get(block=True)
    raise SystemExit
BaseObserver.dispatch_events = dispatch_events
"""

LOOP_HANGS = """
import os, threading
from echod.app.context import ReadContext
sound = ReadContext.discover_stores
def discover_stores(self):
    if (self.paths.state / "hang").exists():
        threading.Event().wait()
    return sound(self)
ReadContext.discover_stores = discover_stores
"""

OLDER = """
import echod
echod.__version__ = "0.0.9"
"""


@contextlib.contextmanager
def faulty_daemon(home: Home, patch: str) -> Iterator[Daemon]:
    """Run a service with one fault, and end it in every case."""
    code = f"{patch}\nimport sys\nfrom echod.cli.main import main\nsys.argv = ['echod', 'run']\nmain()\n"
    log = home.root / "service.log"
    with log.open("a") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", code], env=home.environ, cwd=home.root, stdout=out, stderr=out, text=True
        )
    try:
        beat = home.root / "run/heartbeat.json"
        until(lambda: beat.exists() and process.poll() is None, "the service's first heartbeat")
        yield Daemon(home, process, log)
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class StatusResult:
    """The result of `echod status`."""

    code: int
    report: dict[str, Any]

    @property
    def warnings(self) -> dict[str, str]:
        return {warning["code"]: f"{warning['text']} {warning['fix']}" for warning in self.report["warnings"]}


def read_status(home: Home) -> StatusResult:
    done = home.echod("status", "--json")
    assert done.stdout, done.stderr
    return StatusResult(done.returncode, json.loads(done.stdout))


def wait_for_warning(home: Home, warning: str) -> StatusResult:
    """Wait until `status` has a warning."""
    latest: list[StatusResult] = []

    def there() -> bool:
        latest[:] = [read_status(home)]
        return warning in latest[0].warnings

    until(there, f"the warning {warning}", seconds=PATIENCE_SECONDS)
    return latest[0]


def write_finding(root: Path, title: str = "Timeouts are missing") -> None:
    (root / f".rune/echoes/reviewer/{title.split(maxsplit=1)[0].lower()}-findings.md").write_text(finding_text(title))


def is_remembered(root: Path, title: str = "Timeouts are missing") -> bool:
    memory = root / ".rune/echoes/reviewer/MEMORY.md"
    return memory.exists() and title in memory.read_text()


@dataclass(frozen=True)
class FaultyService:
    """Run a service with a fault from before its start."""

    home: Home
    root: Path


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, FaultyService]]:
    """Run the faults whose detection takes twenty seconds, all at once."""
    with contextlib.ExitStack() as stack:
        sick: dict[str, FaultyService] = {}
        for how in (WORKER_HANGS, EVENTS_STOP, EVENTS_STOP_ONCE, LOOP_HANGS):
            home = Home(tmp_path_factory.mktemp("home"))
            root = make_project(tmp_path_factory.mktemp("p"))
            home.state.mkdir(mode=0o700)
            (home.state / "projects").write_text(f"{root}\n")
            stack.enter_context(faulty_daemon(home, how))
            sick[how] = FaultyService(home, root)
        write_finding(sick[WORKER_HANGS].root)
        write_finding(sick[EVENTS_STOP_ONCE].root)
        (sick[LOOP_HANGS].home.state / "hang").touch()
        write_wake_file(sick[LOOP_HANGS].home.root / "run/canary/wake", "look")
        yield sick


@pytest.mark.parametrize(
    "seconds",
    [
        WORKER_STALL_SECONDS + HEARTBEAT_SECONDS,  # the worker hangs, and the next heartbeat reports it
        CANARY_INTERVAL_SECONDS + CANARY_SECONDS + HEARTBEAT_SECONDS,  # events stop just after a pulse arrived
        HEARTBEAT_MAX_AGE_SECONDS + HEARTBEAT_SECONDS,  # the loop hangs
        HEARTBEAT_SECONDS + STATUS_WRITE_SECONDS,  # the disk fills
    ],
)
def test_no_fault_takes_longer_than_half_a_minute_to_be_detected(seconds: float) -> None:
    assert seconds <= WITHIN_SECONDS


def test_a_hung_worker_is_reported_with_its_job(slow: dict[str, FaultyService]) -> None:
    said = wait_for_warning(slow[WORKER_HANGS].home, "daemon-hung")

    assert said.code == 4
    assert said.report["health"] == "down"
    assert "the worker makes no progress (consolidate reviewer in" in said.warnings["daemon-hung"]
    assert "kill " in said.warnings["daemon-hung"], "there is no service to restart"


def test_events_that_do_not_arrive_any_more_are_reported(slow: dict[str, FaultyService]) -> None:
    said = wait_for_warning(slow[EVENTS_STOP].home, "daemon-hung")

    assert said.code == 4
    assert "file events do not arrive any more" in said.warnings["daemon-hung"]


def test_without_events_findings_are_found_all_the_same(slow: dict[str, FaultyService]) -> None:
    write_finding(slow[EVENTS_STOP].root)

    until(lambda: is_remembered(slow[EVENTS_STOP].root), "the finding to be folded in", seconds=PATIENCE_SECONDS)


def test_a_hung_loop_is_reported(slow: dict[str, FaultyService]) -> None:
    said = wait_for_warning(slow[LOOP_HANGS].home, "daemon-hung")

    assert said.code == 4
    assert "has not reported progress" in said.warnings["daemon-hung"]


def test_a_watcher_whose_thread_died_is_replaced_and_misses_nothing(slow: dict[str, FaultyService]) -> None:
    home, root = slow[EVENTS_STOP_ONCE].home, slow[EVENTS_STOP_ONCE].root
    until(lambda: is_remembered(root), "the finding to be folded in", seconds=PATIENCE_SECONDS)
    until(lambda: "rescan" in (home.root / "service.log").read_text(), "the dead thread to be noticed")
    write_finding(root, "Retries are endless")

    until(lambda: is_remembered(root, "Retries are endless"), "the second finding", seconds=PATIENCE_SECONDS)
    until(lambda: read_status(home).code == 0, "the service to be well again", seconds=PATIENCE_SECONDS)


def test_a_dead_job_is_reported_and_the_service_continues(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    home.run("add", root)
    with faulty_daemon(home, JOB_DIES) as running:
        write_finding(root)

        said = wait_for_warning(home, "job-failing")

        assert said.code == 1
        assert "unexpected ZeroDivisionError" in said.warnings["job-failing"]
        assert running.process.poll() is None


def test_a_dead_job_is_reported_until_its_cause_is_fixed(home: Home, tmp_path: Path) -> None:
    home = Home(home.root, {"ECHOD_MAX_ATTEMPTS": "1"})
    root = make_project(tmp_path / "p")
    memory = root / ".rune/echoes/reviewer/MEMORY.md"
    (tmp_path / "mine.md").write_text("# Mine\n")
    memory.symlink_to(tmp_path / "mine.md")
    home.run("add", root)
    with running_daemon(home):
        write_finding(root)
        said = wait_for_warning(home, "job-failed")
        assert said.code == 1
        assert "echod jobs retry" in said.warnings["job-failed"]

        memory.unlink()

        until(lambda: is_remembered(root), "the finding to be folded in", seconds=PATIENCE_SECONDS)
        until(lambda: "job-failed" not in read_status(home).warnings, "the warning to go")


def test_suspended_differs_from_stopped_and_from_running(home: Home) -> None:
    running = start_daemon(home)
    try:
        running.process.send_signal(signal.SIGSTOP)
        suspended = read_status(home)
        running.process.send_signal(signal.SIGCONT)
        until(lambda: read_status(home).code == 0, "the service to go on", seconds=PATIENCE_SECONDS)
    finally:
        running.kill()
    stopped = read_status(home)

    assert suspended.code == 4
    assert f"kill -CONT {running.process.pid}" in suspended.warnings["daemon-suspended"]
    assert stopped.code == 3
    assert "daemon-stopped" in stopped.warnings


def test_a_service_of_another_version_answers_and_is_reported(home: Home) -> None:
    with faulty_daemon(home, OLDER):
        said = wait_for_warning(home, "daemon-upgraded")

    assert said.code == 1
    assert "0.0.9" in said.warnings["daemon-upgraded"]
    assert "kill " in said.warnings["daemon-upgraded"], "there is no service to restart"


def test_a_locked_database_stops_nothing_and_is_reported(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    home.run("add", root)
    with running_daemon(home) as running:
        other = sqlite3.connect(home.state / "echod.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        write_finding(root)

        said = wait_for_warning(home, "database-unavailable")
        other.execute("ROLLBACK")
        other.close()

        assert said.code == 1
        assert "in use by another process" in said.warnings["database-unavailable"]
        until(lambda: is_remembered(root), "the finding to be folded in", seconds=PATIENCE_SECONDS)
        until(lambda: read_status(home).code == 0, "the warning to go", seconds=PATIENCE_SECONDS)
        assert running.process.poll() is None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 40 MB."""
    if os.getuid() != 0 or not sys.platform.startswith("linux") or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", place], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def fill_disk(disk: Path) -> Path:
    """Create a file that takes all free space."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 65_536):
            pass
    with filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 512):
            pass
    return filler


def test_a_full_disk_under_its_own_files_is_reported_and_work_continues_when_there_is_space(
    home: Home, tmp_path: Path, small_disk: Path
) -> None:
    full = Home(home.root, {"ECHOD_STATE_DIR": str(small_disk / "state")})
    root = make_project(tmp_path / "p")
    full.run("add", root)
    with running_daemon(full) as running:
        filler = fill_disk(small_disk)
        write_finding(root)

        said = wait_for_warning(full, "disk-full")
        assert said.code == 1
        assert "Free some space" in said.warnings["disk-full"]
        assert running.process.poll() is None

        filler.unlink()

        until(lambda: is_remembered(root), "the finding to be folded in", seconds=PATIENCE_SECONDS)
        until(lambda: read_status(full).code == 0, "the warning to go", seconds=PATIENCE_SECONDS)
        assert running.process.poll() is None


@pytest.mark.slow
def test_a_service_that_starts_on_a_full_disk_waits_for_space(home: Home, tmp_path: Path, small_disk: Path) -> None:
    full = Home(home.root, {"ECHOD_STATE_DIR": str(small_disk / "state")})
    root = make_project(tmp_path / "p")
    full.run("add", root)
    full.run("run", "--once", root)
    filler = fill_disk(small_disk)
    write_finding(root)
    log = home.root / "service.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "echod", "run"], env=full.environ, cwd=home.root, stderr=stderr
        )
    try:
        until(lambda: b"full" in log.read_bytes(), "the service to report the full disk", seconds=PATIENCE_SECONDS)
        assert process.poll() is None

        filler.unlink()

        until(lambda: is_remembered(root), "the finding to be folded in", seconds=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()


def test_a_full_disk_under_a_memory_fails_the_job_and_loses_nothing(home: Home, small_disk: Path) -> None:
    root = make_project(small_disk / "p")
    home.run("add", root)
    with running_daemon(home):
        write_finding(root)
        until(lambda: is_remembered(root), "the first finding")
        memory = root / ".rune/echoes/reviewer/MEMORY.md"
        before = memory.read_bytes()
        stage = root / "stage"
        stage.write_text(finding_text("Retries are endless"))
        filler = fill_disk(small_disk)
        stage.rename(root / ".rune/echoes/reviewer/retries-findings.md")

        said = wait_for_warning(home, "job-failing")
        assert said.code == 1
        assert memory.read_bytes() == before

        filler.unlink()
        job = next(job for job in said.report["waiting"] if job["state"] == "queued")
        home.run("jobs", "retry", job["job"])

        until(lambda: is_remembered(root, "Retries are endless"), "the second finding", seconds=PATIENCE_SECONDS)
