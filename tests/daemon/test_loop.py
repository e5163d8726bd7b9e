"""The loop and the worker through what no outside process can bring about: clocks that jump, a database that says no."""

from __future__ import annotations

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
from echod.app.services import House, furnish
from echod.contract.status import StatusReport, status_from_json
from echod.daemon import loop as daemon_loop
from echod.daemon.event_health import Canary, EventPipe
from echod.daemon.events import Sink
from echod.daemon.loop import Identity, Loop
from echod.daemon.main import me
from echod.daemon.notify import Notifier
from echod.daemon.timers import ClockJumps, Metronome, Tick
from echod.daemon.watcher import Watcher
from echod.daemon.worker_thread import Crew
from echod.errors import EchodError
from echod.projects.registry import Projects
from echod.runtime.heartbeat import Heart, read
from echod.runtime.locks import daemon_lock
from echod.runtime.wake import WakeFile
from echod.scheduler.needs import Trouble
from echod.scheduler.reconcile import complete
from echod.scheduler.worker import Finished
from echod.settings import loader
from echod.state import errors
from echod.state.job import JobState
from echod.state.queue import JobQueue
from tests.support import Home, finding, project, until

HOUR = 3_600.0


class Life:
    """A loop and a worker that is not started, as the service builds them; the test is the clock."""

    def __init__(self, house: House, loop: Loop, crew: Crew, lost: list[EchodError]) -> None:
        self.house = house
        self.loop = loop
        self.crew = crew
        self.lost = lost
        self.wall = time.time()
        self.monotonic = time.monotonic()

    def turn(self, seconds: float = 1.0, jump: float = 0.0) -> float:
        """One turn, so many seconds later by both clocks, and `jump` more by the wall clock."""
        self.wall += seconds + jump
        self.monotonic += seconds
        return self.loop.turn(self.wall, self.monotonic, self.crew)

    @property
    def reconciled_at(self) -> float | None:
        beat = read(self.house.paths.heartbeat)
        return beat.reconciled_at if beat else None

    @property
    def status(self) -> StatusReport:
        return status_from_json(self.house.paths.snapshot.read_text())


@contextmanager
def living(home: Home, *roots: Path) -> Iterator[Life]:
    own = paths.from_environment(home.environ)
    own.create()
    for root in roots:
        Projects(own.projects).add(root)
    settings = loader.load(home.root / "none.toml", {k: v for k, v in home.environ.items() if k.startswith("ECHOD_")})
    lost: list[EchodError] = []
    wake, reconcile_now = threading.Event(), threading.Event()
    reconcile_now.set()
    with ExitStack() as stack:
        house = stack.enter_context(furnish(own, settings, home.environ, time.time))
        metronome = stack.enter_context(Metronome([Tick("reconcile", HOUR, reconcile_now.set)]))
        this = me()
        loop = Loop(
            house,
            me=Identity(this.pid, this.started, time.time()),
            pipe=EventPipe(stack.enter_context(Watcher(Sink(wake))), Canary(own.canary)),
            heart=Heart(own.heartbeat),
            notifier=Notifier.from_environment({}, os.getpid()),
            lock=stack.enter_context(daemon_lock(own.daemon_lock, this)),
            wake_file=WakeFile(own.wake),
            wake=wake,
            reconcile_now=reconcile_now,
            metronome=metronome,
            jumps=ClockJumps(time.time(), time.monotonic()),
        )
        crew = Crew(
            house.worker,
            exclusive=nullcontext,
            next_due=house.view.next_due,
            wall=time.time,
            ended=loop.job_ended,
            lost=lost.append,
            progress=lambda: house.progress.at,
        )
        life = Life(house, loop, crew, lost)
        life.turn(0.0)
        yield life
        crew.stop(10)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    root.mkdir()
    return Home(root)


@pytest.mark.parametrize("jump", [2 * HOUR, -2 * HOUR], ids=["ahead", "back"])
def test_after_a_clock_jump_everything_is_looked_at_and_the_metronome_counts_anew(
    home: Home, tmp_path: Path, jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[float] = []
    monkeypatch.setattr(Metronome, "reschedule_all", lambda _: counted.append(1.0))
    with living(home, project(tmp_path / "p")) as life:
        life.turn(6)
        assert counted == []

        life.turn(6, jump)

        assert counted == [1.0]
        assert life.reconciled_at == life.wall


def test_work_that_was_due_before_the_clock_was_set_back_does_not_wait_for_it_to_catch_up(
    home: Home, tmp_path: Path
) -> None:
    root = project(tmp_path / "p")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding("Timeouts are missing"))
    with living(home, root) as life:
        before = life.house.view.next_due()

        life.turn(6, -2 * HOUR)

        due = life.house.view.next_due()
        assert before is not None
        assert due is not None
        assert due <= life.wall + 60


def test_a_small_step_of_a_time_server_is_no_jump(home: Home) -> None:
    with living(home) as life:
        life.turn(6)
        before = life.reconciled_at

        life.turn(6, 1.5)

        assert life.reconciled_at == before


def test_a_store_that_takes_long_to_look_at_gets_a_rest_ten_times_as_long(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(tmp_path / "p")
    memory = root / ".rune/echoes/reviewer/MEMORY.md"
    halves = itertools.count()
    with living(home, root) as life:
        looked: list[float] = []

        def noted(*arguments: Any) -> tuple[Trouble, ...]:
            looked.append(life.monotonic)
            return complete(*arguments)

        monkeypatch.setattr(daemon_loop, "complete", noted)
        monkeypatch.setattr(daemon_loop, "time", SimpleNamespace(monotonic=lambda: next(halves) / 2))
        for looks in (1, 2):
            memory.write_text(finding(f"Version {looks}"))
            until(lambda wanted=looks: life.turn(0.1) >= 0 and len(looked) >= wanted, "a look")  # type: ignore[misc]

    assert looked[1] - looked[0] >= 5.0


def test_what_agents_left_is_queued_before_memories_are_read_and_those_are_read_without_another_event(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(tmp_path / "p")
    role = root / ".rune/echoes/reviewer"
    with living(home, root) as life:
        queued: list[int] = []

        def noted(*arguments: Any) -> tuple[Trouble, ...]:
            queued.append(len(life.house.view.jobs({JobState.QUEUED}, 9)))
            return complete(*arguments)

        monkeypatch.setattr(daemon_loop, "complete", noted)
        (role / "MEMORY.md").write_text(finding("Known"))
        (role / "agent-findings.md").write_text(finding("Fresh"))
        os.utime(role / "agent-findings.md", (life.wall - HOUR, life.wall - HOUR))
        until(lambda: life.turn(0.05) >= 0 and bool(life.house.view.jobs({JobState.QUEUED}, 9)), "a job")
        before = list(queued)
        until(lambda: life.turn(0.05) >= 0 and len(queued) > len(before), "the rest of the look")

    assert before == []
    assert queued == [1]


def test_agents_who_never_rest_do_not_keep_the_status_from_being_renewed(home: Home, tmp_path: Path) -> None:
    roots = [project(tmp_path / name) for name in ("a", "b", "c")]
    shown: list[float] = []
    with living(home, *roots) as life:
        for number in range(120):
            findings = roots[number % 3] / f".rune/echoes/reviewer/agent{number}-findings.md"
            findings.write_text(finding(f"Fresh {number}"))
            os.utime(findings, (life.wall - HOUR, life.wall - HOUR))
            before = life.status if shown else None
            life.turn(0.1)
            if life.status != before:
                shown.append(life.monotonic)

    assert len(shown) >= 4
    assert max(later - earlier for earlier, later in itertools.pairwise(shown)) <= 2.5


def _told(life: Life, code: str) -> bool:
    life.turn(1)
    return code in {warning.code for warning in life.status.warnings}


def _busy(life: Life) -> EchodError:
    return errors.busy(life.house.paths.database)


def _full(life: Life) -> EchodError:
    return errors.DatabaseFullError(f"The state database {life.house.paths.database} cannot be written.")


@pytest.mark.parametrize("refusal", [_busy, _full])
def test_a_database_that_cannot_be_used_is_told_and_tried_again(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: Callable[[Life], EchodError]
) -> None:
    root = project(tmp_path / "p")
    with living(home, root) as life:
        life.turn(6)
        (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding("Timeouts are missing"))
        put = JobQueue.put

        def refused(*_: Any) -> None:
            raise refusal(life)

        with monkeypatch.context() as closed:
            closed.setattr(JobQueue, "put", refused)
            until(lambda: _told(life, "database-unavailable"), "it to be told")
        assert JobQueue.put is put

        life.turn(2)
        life.turn(6)

        assert life.house.view.counts()[JobState.QUEUED] == 1
        assert "database-unavailable" not in {warning.code for warning in life.status.warnings}


def test_the_outcome_of_a_job_is_written_as_soon_as_the_database_can_be_used(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(tmp_path / "p")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding("Timeouts are missing"))
    finish = JobQueue.finish
    refusals = iter(range(2))

    def refuses_twice(self: JobQueue, *arguments: Any) -> Any:
        if next(refusals, None) is not None:
            raise errors.busy(Path("echod.db"))
        return finish(self, *arguments)

    monkeypatch.setattr(JobQueue, "finish", refuses_twice)
    with living(home, root) as life:
        life.crew.start()

        until(lambda: life.house.view.counts()[JobState.DONE] == 1, "the outcome in the queue")
        until(lambda: not life.house.worker.owes_a_row, "nothing to be owed")

        assert (root / ".rune/echoes/reviewer/MEMORY.md").read_text().count("Timeouts are missing") >= 1
        assert life.house.view.counts()[JobState.RUNNING] == 0
        assert life.lost == []


def test_a_job_that_goes_on_is_no_worker_that_hangs(home: Home, tmp_path: Path) -> None:
    root = project(tmp_path / "p")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding("Timeouts are missing"))
    with living(home, root) as life:
        before = life.crew.moved

        assert life.house.worker.turn() is not None  # its thread does not run, so only the job's steps can tell

        assert life.crew.moved > before


def test_a_lost_database_ends_the_worker_at_once(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: Any) -> Finished | None:
        raise errors.lost(Path("echod.db"))

    with living(home) as life:
        monkeypatch.setattr(Crew, "_one", lost)
        life.crew.start()

        until(lambda: bool(life.lost), "the loss to be told")


def test_a_status_that_cannot_be_left_takes_the_old_one_away(home: Home, tmp_path: Path) -> None:
    with living(home, project(tmp_path / "p")) as life:
        life.turn(6)
        stage = life.house.paths.snapshot.with_name(f".status.json.{os.getpid()}")
        assert life.house.paths.snapshot.exists()
        stage.mkdir()  # the place where the next one would be written
        Projects(life.house.paths.projects).add(project(tmp_path / "other"))
        life.house.paths.wake.write_text("look")

        life.turn(6)
        assert not life.house.paths.snapshot.exists()

        stage.rmdir()
        life.turn(6)
        assert life.house.paths.snapshot.exists()


def test_a_damaged_database_that_was_moved_aside_stays_in_sight(home: Home) -> None:
    with living(home) as life:
        copy = life.house.paths.database.with_name("echod.db.damaged-20261101T000000Z")
        copy.write_bytes(b"damaged")
        life.house.paths.wake.write_text("look")

        life.turn(6)

        notices = [warning for warning in life.status.warnings if warning.code == "database-copies"]
        assert [str(copy) in notice.fix for notice in notices] == [True]
