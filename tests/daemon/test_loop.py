"""The loop and the worker under conditions that no outside process can cause: clock jumps, a database that refuses."""

from __future__ import annotations

import errno
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from echod import paths
from echod.app.services import Services, open_services
from echod.contract.status import StatusReport, status_from_json
from echod.daemon import loop as daemon_loop
from echod.daemon import status_publisher
from echod.daemon.events import Canary, EventBuffer, EventSource
from echod.daemon.loop import DaemonLoop
from echod.daemon.status_publisher import Notifier
from echod.daemon.upkeep import ClockJumpDetector, IntervalScheduler, PeriodicTask, SearchIndexer
from echod.daemon.watcher import Watcher
from echod.errors import EchodError
from echod.projects.registry import ProjectRegistry
from echod.runtime.heartbeat import HeartbeatWriter, WakeFile, read_heartbeat
from echod.runtime.locks import daemon_lock, this_process
from echod.scheduler.needs import ReadProblem
from echod.scheduler.reconcile import queue_maintenance
from echod.scheduler.worker import FinishedJob, WorkerThread
from echod.search.finder import DocumentFinder
from echod.settings import loader
from echod.state.database import DatabaseFullError, busy_error, lost_error
from echod.state.jobs import JobState
from echod.state.queue import JobQueue
from tests.support import Home, finding_text, make_project, until

HOUR = 3_600.0


class LoopHarness:
    """A loop and a worker that is not started, built as in the service. The test is the clock."""

    def __init__(
        self, services: Services, loop: DaemonLoop, worker_thread: WorkerThread, lost: list[EchodError]
    ) -> None:
        self.services = services
        self.loop = loop
        self.worker_thread = worker_thread
        self.fatal_errors = lost
        self.wall = time.time()
        self.monotonic = time.monotonic()

    def run_once(self, seconds: float = 1.0, jump: float = 0.0) -> float:
        """Run one iteration, `seconds` later by both clocks and `jump` more by the wall clock."""
        self.wall += seconds + jump
        self.monotonic += seconds
        return self.loop.run_once(self.wall, self.monotonic, self.worker_thread)

    @property
    def reconciled_at(self) -> float | None:
        beat = read_heartbeat(self.services.paths.heartbeat)
        return beat.reconciled_at if beat else None

    @property
    def status(self) -> StatusReport:
        return status_from_json(self.services.paths.status_snapshot.read_text())


@contextmanager
def running_loop(home: Home, *roots: Path) -> Iterator[LoopHarness]:
    own_paths = paths.paths_from_environment(home.environ)
    own_paths.create_directories()
    for root in roots:
        ProjectRegistry(own_paths.projects).add(root)
    settings = loader.load_settings(
        home.root / "none.toml", {k: v for k, v in home.environ.items() if k.startswith("ECHOD_")}
    )
    fatal_errors: list[EchodError] = []
    wake, reconcile_now = threading.Event(), threading.Event()
    reconcile_now.set()
    with ExitStack() as stack:
        services = stack.enter_context(open_services(own_paths, settings, home.environ, time.time))
        interval_scheduler = stack.enter_context(
            IntervalScheduler([PeriodicTask("reconcile", HOUR, reconcile_now.set)])
        )
        owner = this_process()
        loop = DaemonLoop(
            services,
            identity=owner,
            event_source=EventSource(stack.enter_context(Watcher(EventBuffer(wake))), Canary(own_paths.canary)),
            heartbeat_writer=HeartbeatWriter(own_paths.heartbeat),
            notifier=Notifier.from_environment({}, os.getpid()),
            lock=stack.enter_context(daemon_lock(own_paths.daemon_lock, owner)),
            wake_file=WakeFile(own_paths.wake_file),
            wake=wake,
            reconcile_now=reconcile_now,
            interval_scheduler=interval_scheduler,
            clock_jumps=ClockJumpDetector(time.time(), time.monotonic()),
            search_indexer=SearchIndexer(
                DocumentFinder(own_paths.search_index), sources_of=lambda _: (), shared_sources=tuple
            ),
        )
        worker_thread = WorkerThread(
            services.worker,
            acquire_lock=nullcontext,
            next_due=services.queue_view.next_due,
            wall_clock=time.time,
            on_finished=loop.job_finished,
            on_must_wait=loop.store_must_wait,
            on_fatal_error=fatal_errors.append,
            last_step_at=lambda: services.progress.last_step_at,
        )
        harness = LoopHarness(services, loop, worker_thread, fatal_errors)
        harness.run_once(0.0)
        yield harness
        worker_thread.stop(10)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    root.mkdir()
    return Home(root)


@pytest.mark.parametrize("jump", [2 * HOUR, -2 * HOUR], ids=["ahead", "back"])
def test_after_a_clock_jump_everything_is_reconciled_and_the_intervals_restart(
    home: Home, tmp_path: Path, jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[float] = []
    monkeypatch.setattr(IntervalScheduler, "reschedule_all", lambda _: counted.append(1.0))
    with running_loop(home, make_project(tmp_path / "p")) as harness:
        harness.run_once(6)
        assert counted == []

        harness.run_once(6, jump)

        assert counted == [1.0]
        assert harness.reconciled_at == harness.wall


def test_work_that_was_due_before_the_clock_was_set_back_does_not_wait_for_it_to_catch_up(
    home: Home, tmp_path: Path
) -> None:
    root = make_project(tmp_path / "p")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing"))
    with running_loop(home, root) as harness:
        before = harness.services.queue_view.next_due()

        harness.run_once(6, -2 * HOUR)

        due = harness.services.queue_view.next_due()
        assert before is not None
        assert due is not None
        assert due <= harness.wall + 60


def test_a_long_first_look_is_done_in_slices_that_report_progress(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_loop, "SLICE_SECONDS", 0.0)
    roots = [make_project(tmp_path / name) for name in ("a", "b", "c")]
    home.runtime.mkdir(parents=True, exist_ok=True)
    (home.runtime / "status.json").write_text("of a daemon that was killed")
    with running_loop(home, *roots) as harness:
        first = read_heartbeat(harness.services.paths.heartbeat)
        assert first is not None
        assert first.reconciled_at is None
        assert first.health == "starting: 1 of 3 stores inspected"
        assert not harness.services.paths.status_snapshot.exists()
        late = roots[2] / ".rune/echoes/reviewer/ward-findings.md"
        late.write_text(finding_text("Timeouts are missing"))

        assert harness.run_once() < daemon_loop.MAX_WAIT_SECONDS
        assert harness.reconciled_at != harness.wall
        harness.run_once(6)

        assert harness.reconciled_at == harness.wall
        assert [store.path for store in harness.status.stores] == [f"{root}/.rune/echoes" for root in roots]
        assert harness.services.queue_view.next_due() is not None


def test_a_full_look_that_starts_again_continues_with_the_stores_that_it_had_not_reached(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_loop, "SLICE_SECONDS", 0.0)
    with running_loop(home, *(make_project(tmp_path / name) for name in ("a", "b", "c"))) as harness:
        inspected: list[str] = []

        def recorded(store: Any, *arguments: Any) -> tuple[ReadProblem, ...]:
            inspected.append(store.project.name)
            return queue_maintenance(store, *arguments)

        monkeypatch.setattr(daemon_loop, "queue_maintenance", recorded)
        for _ in range(2):
            harness.loop.reconcile_now.set()
            harness.run_once()

        assert inspected == ["b", "c"]


def test_a_small_step_of_a_time_server_is_no_jump(home: Home) -> None:
    with running_loop(home) as harness:
        harness.run_once(6)
        before = harness.reconciled_at

        harness.run_once(6, 1.5)

        assert harness.reconciled_at == before


def record_inspections(harness: LoopHarness, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the list that gets the time of each inspection from now on."""
    inspected_at: list[float] = []

    def recorded(*arguments: Any) -> tuple[ReadProblem, ...]:
        inspected_at.append(harness.monotonic)
        return queue_maintenance(*arguments)

    monkeypatch.setattr(daemon_loop, "queue_maintenance", recorded)
    return inspected_at


def test_a_store_whose_inspection_is_slow_is_held_off_ten_times_as_long(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_project(tmp_path / "p")
    memory = root / ".rune/echoes/reviewer/MEMORY.md"
    half_seconds = itertools.count()
    with running_loop(home, root) as harness:
        inspected_at = record_inspections(harness, monkeypatch)
        monkeypatch.setattr(daemon_loop, "time", SimpleNamespace(monotonic=lambda: next(half_seconds) / 2))
        for number in (1, 2):
            memory.write_text(finding_text(f"Version {number}"))
            until(lambda wanted=number: harness.run_once(0.1) >= 0 and len(inspected_at) >= wanted, "an inspection")  # type: ignore[misc]

    assert inspected_at[1] - inspected_at[0] >= 5.0


def test_a_finding_is_queued_at_once_while_the_inspection_of_a_long_memory_is_held_off(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_project(tmp_path / "p")
    role = root / ".rune/echoes/reviewer"
    with running_loop(home, root) as harness:
        inspected_at = record_inspections(harness, monkeypatch)
        clock = SimpleNamespace(monotonic=lambda: 3.0 * len(inspected_at))
        monkeypatch.setattr(daemon_loop, "time", clock)
        (role / "MEMORY.md").write_text(finding_text("Known"))
        until(lambda: harness.run_once(0.1) >= 0 and len(inspected_at) == 1, "an inspection")
        (role / "agent-findings.md").write_text(finding_text("Fresh"))
        os.utime(role / "agent-findings.md", (harness.wall - HOUR, harness.wall - HOUR))
        until(
            lambda: harness.run_once(0.01) >= 0 and bool(harness.services.queue_view.list_jobs({JobState.QUEUED}, 9)),
            "a job",
        )
        queued_at = harness.monotonic
        while len(inspected_at) < 2 and harness.monotonic < queued_at + HOUR:
            harness.run_once(0.5)

    assert queued_at - inspected_at[0] < 30
    assert inspected_at[1] - inspected_at[0] >= 30


def test_findings_are_queued_before_memories_are_read_and_those_are_read_without_another_event(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_project(tmp_path / "p")
    role = root / ".rune/echoes/reviewer"
    with running_loop(home, root) as harness:
        queued: list[int] = []

        def recorded(*arguments: Any) -> tuple[ReadProblem, ...]:
            queued.append(len(harness.services.queue_view.list_jobs({JobState.QUEUED}, 9)))
            return queue_maintenance(*arguments)

        monkeypatch.setattr(daemon_loop, "queue_maintenance", recorded)
        (role / "MEMORY.md").write_text(finding_text("Known"))
        (role / "agent-findings.md").write_text(finding_text("Fresh"))
        os.utime(role / "agent-findings.md", (harness.wall - HOUR, harness.wall - HOUR))
        until(
            lambda: harness.run_once(0.05) >= 0 and bool(harness.services.queue_view.list_jobs({JobState.QUEUED}, 9)),
            "a job",
        )
        before = list(queued)
        until(lambda: harness.run_once(0.05) >= 0 and len(queued) > len(before), "the rest of the inspection")

    assert before == []
    assert queued == [1]


def test_agents_without_pauses_do_not_keep_the_status_from_being_renewed(home: Home, tmp_path: Path) -> None:
    roots = [make_project(tmp_path / name) for name in ("a", "b", "c")]
    shown: list[float] = []
    with running_loop(home, *roots) as harness:
        for number in range(120):
            findings = roots[number % 3] / f".rune/echoes/reviewer/agent{number}-findings.md"
            findings.write_text(finding_text(f"Fresh {number}"))
            os.utime(findings, (harness.wall - HOUR, harness.wall - HOUR))
            before = harness.status if shown else None
            harness.run_once(0.1)
            if harness.status != before:
                shown.append(harness.monotonic)

    assert len(shown) >= 4
    assert max(later - earlier for earlier, later in itertools.pairwise(shown)) <= 2.5


def _has_warning(harness: LoopHarness, code: str) -> bool:
    harness.run_once(1)
    return code in {warning.code for warning in harness.status.warnings}


def _busy_error(harness: LoopHarness) -> EchodError:
    return busy_error(harness.services.paths.database)


def _full_error(harness: LoopHarness) -> EchodError:
    return DatabaseFullError(f"The state database {harness.services.paths.database} cannot be written.")


@pytest.mark.parametrize("refusal", [_busy_error, _full_error])
def test_a_database_that_cannot_be_used_is_reported_and_retried(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: Callable[[LoopHarness], EchodError]
) -> None:
    root = make_project(tmp_path / "p")
    with running_loop(home, root) as harness:
        harness.run_once(6)
        (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing"))
        put = JobQueue.put

        def refused(*_: Any) -> None:
            raise refusal(harness)

        with monkeypatch.context() as closed:
            closed.setattr(JobQueue, "put", refused)
            until(lambda: _has_warning(harness, "database-unavailable"), "the warning")
        assert JobQueue.put is put

        harness.run_once(2)
        harness.run_once(6)

        assert harness.services.queue_view.count_by_state()[JobState.QUEUED] == 1
        assert "database-unavailable" not in {warning.code for warning in harness.status.warnings}


def test_the_outcome_of_a_job_is_written_as_soon_as_the_database_can_be_used(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_project(tmp_path / "p")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing"))
    finish = JobQueue.finish
    refusals = iter(range(2))

    def refuses_twice(self: JobQueue, *arguments: Any) -> Any:
        if next(refusals, None) is not None:
            raise busy_error(Path("echod.db"))
        return finish(self, *arguments)

    monkeypatch.setattr(JobQueue, "finish", refuses_twice)
    with running_loop(home, root) as harness:
        harness.worker_thread.start()

        until(lambda: harness.services.queue_view.count_by_state()[JobState.DONE] == 1, "the outcome in the queue")
        until(lambda: not harness.services.worker.has_unsaved_result, "no unsaved result")

        assert (root / ".rune/echoes/reviewer/MEMORY.md").read_text().count("Timeouts are missing") >= 1
        assert harness.services.queue_view.count_by_state()[JobState.RUNNING] == 0
        assert harness.fatal_errors == []


def test_a_job_that_makes_progress_is_not_a_hung_worker(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing"))
    with running_loop(home, root) as harness:
        before = harness.worker_thread.last_progress

        assert (
            harness.services.worker.run_next() is not None
        )  # its thread does not run, so only the job's steps can tell

        assert harness.worker_thread.last_progress > before


def test_a_lost_database_ends_the_worker_at_once(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: Any) -> FinishedJob | None:
        raise lost_error(Path("echod.db"))

    with running_loop(home) as harness:
        monkeypatch.setattr(WorkerThread, "_run_one", lost)
        harness.worker_thread.start()

        until(lambda: bool(harness.fatal_errors), "the fatal error")


def test_a_status_that_cannot_be_written_removes_the_old_one(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with running_loop(home, make_project(tmp_path / "p")) as harness:
        harness.run_once(6)
        assert harness.services.paths.status_snapshot.exists()
        ProjectRegistry(harness.services.paths.projects).add(make_project(tmp_path / "other"))
        harness.services.paths.wake_file.write_text("reconcile")

        with monkeypatch.context() as full_disk:
            full_disk.setattr(status_publisher, "write_runtime_file", fail)
            harness.run_once(6)
        assert not harness.services.paths.status_snapshot.exists()

        harness.run_once(6)
        assert harness.services.paths.status_snapshot.exists()


def test_a_damaged_database_that_was_moved_aside_stays_in_the_status(home: Home) -> None:
    with running_loop(home) as harness:
        copy = harness.services.paths.database.with_name("echod.db.damaged-20261101T000000Z")
        copy.write_bytes(b"damaged")
        harness.services.paths.wake_file.write_text("look")

        harness.run_once(6)

        notices = [warning for warning in harness.status.warnings if warning.code == "database-copies"]
        assert [str(copy) in notice.fix for notice in notices] == [True]
