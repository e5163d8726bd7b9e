from __future__ import annotations

import os
from pathlib import Path

import pytest

from echod.runtime.heartbeat import WakeFile, write_wake_file
from tests.daemon.watcher_harness import WatcherHarness


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "wake"


def test_a_command_wakes_the_daemon_once(path: Path) -> None:
    file = WakeFile(path)
    write_wake_file(path, "1")

    assert file.was_written()
    assert not file.was_written()


def test_two_writes_at_the_same_instant_of_the_file_system_wake_twice(path: Path) -> None:
    file = WakeFile(path)
    write_wake_file(path, "1")
    os.utime(path, ns=(5, 5))
    assert file.was_written()

    write_wake_file(path, "2")
    os.utime(path, ns=(5, 5))

    assert file.was_written()


def test_a_write_before_the_start_does_not_wake_the_daemon(path: Path) -> None:
    write_wake_file(path, "1")

    assert not WakeFile(path).was_written()


def test_a_wake_file_that_vanishes_is_written_again(path: Path) -> None:
    write_wake_file(path, "1")
    file = WakeFile(path)
    path.unlink()
    assert not file.was_written()

    write_wake_file(path, "2")

    assert file.was_written()


def test_the_wake_file_is_private(path: Path) -> None:
    write_wake_file(path, "1")

    assert path.stat().st_mode & 0o777 == 0o600


def test_a_command_creates_the_directory_if_no_daemon_ever_ran(tmp_path: Path) -> None:
    write_wake_file(tmp_path / "run" / "canary" / "wake", "1")

    assert (tmp_path / "run" / "canary").stat().st_mode & 0o777 == 0o700


def test_the_watcher_reports_it(harness: WatcherHarness, path: Path) -> None:
    write_wake_file(path, "1")
    harness.set_targets(hints=(path.parent,))

    write_wake_file(path, "2")

    harness.until(path)
