from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from echod.paths import Paths
from echod.runtime.heartbeat import DaemonState, Heartbeat, HeartbeatWriter, read_liveness
from echod.runtime.locks import LockOwner, daemon_lock
from echod.runtime.system import find_process


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    paths = Paths(tmp_path / "state", tmp_path / "run", tmp_path / "config.toml")
    paths.create_directories()
    return paths


@pytest.fixture
def daemon(paths: Paths) -> Iterator[HeartbeatWriter]:
    """Hold the lock in this process, as a daemon would."""
    me = find_process(os.getpid())
    assert me is not None
    with daemon_lock(paths.daemon_lock, LockOwner(me.pid, me.started, "0.1.0", time.time(), time.monotonic())):
        yield HeartbeatWriter(paths.heartbeat)


def _heartbeat_at(at: float) -> Heartbeat:
    me = find_process(os.getpid())
    assert me is not None
    return Heartbeat(
        pid=me.pid,
        started=me.started,
        version="0.1.0",
        started_at=1.0,
        beat_at=2.0,
        beat_monotonic=at,
        worker_monotonic=at,
        canary_ok=True,
        job="",
        health="healthy",
        reconciled_at=None,
    )


def test_where_nothing_ever_ran_nothing_runs(tmp_path: Path) -> None:
    nowhere = Paths(tmp_path / "no", tmp_path / "where", tmp_path / "config.toml")

    assert read_liveness(nowhere, "0.1.0", 0).state is DaemonState.STOPPED


def test_lock_heartbeat_and_process_together_are_a_running_daemon(paths: Paths, daemon: HeartbeatWriter) -> None:
    assert read_liveness(paths, "0.1.0", time.monotonic()).state is DaemonState.STARTING

    now = time.monotonic()
    daemon.beat(_heartbeat_at(now))

    assert read_liveness(paths, "0.1.0", now).state is DaemonState.RUNNING
    assert read_liveness(paths, "0.2.0", now).state is DaemonState.UPGRADED
    assert read_liveness(paths, "0.1.0", now + 3600).state is DaemonState.HUNG
