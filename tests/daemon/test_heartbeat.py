from __future__ import annotations

import json
from pathlib import Path

import pytest

from echod.runtime.heartbeat import (
    HEARTBEAT_MAX_AGE_SECONDS,
    HEARTBEAT_SECONDS,
    STARTUP_SECONDS,
    WORKER_STALL_SECONDS,
    DaemonState,
    Heartbeat,
    HeartbeatWriter,
    assess_liveness,
    read_heartbeat,
)
from echod.runtime.locks import LockOwner, LockState
from echod.runtime.system import RunningProcess

NOW = 1000.0
PROCESS = RunningProcess(42, "boot:7", suspended=False)
OWNER = LockOwner(42, "boot:7", "0.1.0", 1_700_000_000.0, NOW - 500)
HELD_LOCK = LockState(held=True, owner=OWNER)
HEARTBEAT = Heartbeat(
    pid=42,
    started="boot:7",
    version="0.1.0",
    started_at=1_700_000_000.0,
    beat_at=1_700_000_500.0,
    beat_monotonic=NOW,
    worker_monotonic=NOW,
    canary_ok=True,
    job="",
    health="healthy: 3 stores",
    reconciled_at=None,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "heartbeat.json"


# Writing


def test_a_beat_is_read_as_it_was_written(path: Path) -> None:
    assert HeartbeatWriter(path).beat(HEARTBEAT)

    assert read_heartbeat(path) == HEARTBEAT
    assert [found.name for found in path.parent.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o777 == 0o600


def test_without_progress_the_time_is_not_renewed_and_the_reason_is_written(path: Path) -> None:
    heartbeat_writer = HeartbeatWriter(path)
    heartbeat_writer.beat(HEARTBEAT)
    later = HEARTBEAT._replace(beat_at=HEARTBEAT.beat_at + 30, beat_monotonic=NOW + 30, job="prune reviewer")

    assert not heartbeat_writer.beat(later)

    found = read_heartbeat(path)
    assert found is not None
    assert found.beat_monotonic == NOW
    assert found.stalled == "the worker makes no progress (prune reviewer)"


def test_a_silent_canary_stops_the_time_of_progress(path: Path) -> None:
    heartbeat_writer = HeartbeatWriter(path)

    assert not heartbeat_writer.beat(HEARTBEAT._replace(canary_ok=False))

    found = read_heartbeat(path)
    assert found is not None
    assert found.stalled == "file events do not arrive any more"


def test_a_lasting_stall_is_written_once(path: Path) -> None:
    heartbeat_writer = HeartbeatWriter(path)
    heartbeat_writer.beat(HEARTBEAT)
    heartbeat_writer.beat(HEARTBEAT._replace(canary_ok=False))
    before = path.stat().st_ino

    heartbeat_writer.beat(HEARTBEAT._replace(canary_ok=False, beat_monotonic=NOW + 5, worker_monotonic=NOW + 5))

    assert path.stat().st_ino == before


def test_progress_after_a_stall_renews_the_heartbeat(path: Path) -> None:
    heartbeat_writer = HeartbeatWriter(path)
    heartbeat_writer.beat(HEARTBEAT._replace(canary_ok=False))

    assert heartbeat_writer.beat(HEARTBEAT)

    assert read_heartbeat(path) == HEARTBEAT


def test_a_swept_runtime_directory_is_created_again(path: Path) -> None:
    heartbeat_writer = HeartbeatWriter(path.parent / "run" / path.name)

    assert heartbeat_writer.beat(HEARTBEAT)

    assert read_heartbeat(path.parent / "run" / path.name) == HEARTBEAT


def test_a_heartbeat_that_cannot_be_written_is_a_problem_and_no_exception(path: Path) -> None:
    (path.parent / "run").write_text("in the way")
    heartbeat_writer = HeartbeatWriter(path.parent / "run" / path.name)

    assert heartbeat_writer.beat(HEARTBEAT)
    assert "could not be written" in heartbeat_writer.problem

    (path.parent / "run").unlink()
    assert heartbeat_writer.beat(HEARTBEAT)
    assert heartbeat_writer.problem == ""


def test_a_clean_end_leaves_nothing(path: Path) -> None:
    heartbeat_writer = HeartbeatWriter(path)
    heartbeat_writer.beat(HEARTBEAT)

    heartbeat_writer.clear()
    heartbeat_writer.clear()

    assert read_heartbeat(path) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", json.dumps({**HEARTBEAT._asdict(), "pid": 1, "extra": 1})[:-9]], ids=repr
)
def test_a_torn_or_foreign_heartbeat_is_ignored(path: Path, text: str) -> None:
    path.write_text(text)

    assert read_heartbeat(path) is None


def test_a_newer_daemon_may_write_more_fields(path: Path) -> None:
    path.write_text(json.dumps({**HEARTBEAT._asdict(), "later": "news"}))

    assert read_heartbeat(path) == HEARTBEAT


# Judging


def _assess(
    heartbeat: Heartbeat | None,
    lock: LockState = HELD_LOCK,
    process: RunningProcess | None = PROCESS,
    now: float = NOW + 1,
) -> tuple[DaemonState, str]:
    found = assess_liveness(heartbeat, lock, now, lambda _: process, "0.1.0")
    return found.state, found.text


def test_a_fresh_heartbeat_of_the_lock_holder_is_a_running_daemon() -> None:
    assert _assess(HEARTBEAT) == (DaemonState.RUNNING, "healthy: 3 stores")


def test_without_the_lock_no_daemon_is_running_despite_a_heartbeat() -> None:
    assert _assess(HEARTBEAT, LockState(held=False, owner=OWNER))[0] is DaemonState.STOPPED


def test_a_stopped_daemon_with_a_heartbeat_did_not_stop_cleanly() -> None:
    gone = LockState(held=False, owner=OWNER)

    assert _assess(None, gone) == (DaemonState.STOPPED, "The daemon is not running.")
    state, text = _assess(HEARTBEAT, gone)
    assert state is DaemonState.STOPPED
    assert "process 42 did not stop cleanly" in text


def test_a_daemon_whose_loop_hangs_is_recognised_by_the_age_of_its_heartbeat() -> None:
    state, text = _assess(HEARTBEAT, now=NOW + HEARTBEAT_MAX_AGE_SECONDS + 1)

    assert state is DaemonState.HUNG
    assert "not reported progress for 21 s" in text


def test_a_daemon_that_reports_a_stall_hangs_at_once() -> None:
    state, text = _assess(HEARTBEAT._replace(stalled="the worker makes no progress"))

    assert state is DaemonState.HUNG
    assert "the worker makes no progress" in text


def test_a_daemon_stopped_by_a_signal_is_suspended_and_not_hung() -> None:
    suspended = PROCESS._replace(suspended=True)

    found = assess_liveness(HEARTBEAT, HELD_LOCK, NOW + 9999, lambda _: suspended, "0.1.0")

    assert found.state is DaemonState.SUSPENDED
    assert found.pid == 42


def test_a_daemon_of_another_version_answers_and_is_reported_as_upgraded() -> None:
    found = assess_liveness(HEARTBEAT._replace(version="0.0.9"), HELD_LOCK, NOW, lambda _: PROCESS, "0.1.0")

    assert found.state is DaemonState.UPGRADED
    assert found.is_answering
    assert "0.0.9" in found.text


def test_the_heartbeat_of_an_earlier_daemon_is_ignored() -> None:
    young = LockState(held=True, owner=OWNER._replace(since_monotonic=NOW))

    assert _assess(HEARTBEAT._replace(started="boot:1"), young)[0] is DaemonState.STARTING
    assert _assess(HEARTBEAT._replace(pid=41), young)[0] is DaemonState.STARTING


def test_a_daemon_that_does_not_finish_starting_counts_as_hung() -> None:
    young = LockState(held=True, owner=OWNER._replace(since_monotonic=NOW))

    assert _assess(None, young, now=NOW + STARTUP_SECONDS)[0] is DaemonState.STARTING
    assert _assess(None, young, now=NOW + STARTUP_SECONDS + 1)[0] is DaemonState.HUNG


@pytest.mark.parametrize(
    "process", [None, RunningProcess(42, "boot:8", suspended=False)], ids=["gone", "recycled number"]
)
def test_a_lock_with_another_owner_belongs_to_a_daemon_that_is_just_starting(
    process: RunningProcess | None,
) -> None:
    assert _assess(HEARTBEAT, process=process)[0] is DaemonState.STARTING


def test_every_kind_of_hang_shows_within_30_seconds() -> None:
    assert HEARTBEAT_SECONDS + WORKER_STALL_SECONDS < 30
    assert HEARTBEAT_SECONDS + HEARTBEAT_MAX_AGE_SECONDS < 30
