from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from echod.paths import Paths
from echod.runtime.heartbeat import Heart, Heartbeat, State, observe
from echod.runtime.locks import Holder, daemon_lock
from echod.runtime.process import look_up


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    paths = Paths(tmp_path / "state", tmp_path / "run", tmp_path / "config.toml")
    paths.create()
    return paths


@pytest.fixture
def daemon(paths: Paths) -> Iterator[Heart]:
    """This process holds the lock, as a daemon would."""
    me = look_up(os.getpid())
    assert me is not None
    with daemon_lock(paths.daemon_lock, Holder(me.pid, me.started, "0.1.0", time.time(), time.monotonic())):
        yield Heart(paths.heartbeat)


def _beat(at: float) -> Heartbeat:
    me = look_up(os.getpid())
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

    assert observe(nowhere, "0.1.0", 0).state is State.STOPPED


def test_lock_heartbeat_and_process_together_are_a_running_daemon(paths: Paths, daemon: Heart) -> None:
    assert observe(paths, "0.1.0", time.monotonic()).state is State.STARTING

    now = time.monotonic()
    daemon.beat(_beat(now))

    assert observe(paths, "0.1.0", now).state is State.RUNNING
    assert observe(paths, "0.2.0", now).state is State.UPGRADED
    assert observe(paths, "0.1.0", now + 3600).state is State.HUNG
