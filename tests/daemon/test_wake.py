from __future__ import annotations

import os
from pathlib import Path

import pytest

from echod.runtime.wake import WakeFile, wake
from tests.daemon.watching import Watching


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "wake"


def test_a_command_wakes_the_daemon_once(path: Path) -> None:
    file = WakeFile(path)
    wake(path, "1")

    assert file.woken()
    assert not file.woken()


def test_two_writes_at_the_same_instant_of_the_file_system_wake_twice(path: Path) -> None:
    file = WakeFile(path)
    wake(path, "1")
    os.utime(path, ns=(5, 5))
    assert file.woken()

    wake(path, "2")
    os.utime(path, ns=(5, 5))

    assert file.woken()


def test_what_was_written_before_the_start_wakes_nobody(path: Path) -> None:
    wake(path, "1")

    assert not WakeFile(path).woken()


def test_a_wake_file_that_vanishes_needs_no_hand(path: Path) -> None:
    wake(path, "1")
    file = WakeFile(path)
    path.unlink()
    assert not file.woken()

    wake(path, "2")

    assert file.woken()


def test_the_wake_file_is_private(path: Path) -> None:
    wake(path, "1")

    assert path.stat().st_mode & 0o777 == 0o600


def test_a_command_makes_the_directory_where_no_daemon_ever_ran(tmp_path: Path) -> None:
    wake(tmp_path / "run" / "canary" / "wake", "1")

    assert (tmp_path / "run" / "canary").stat().st_mode & 0o777 == 0o700


def test_the_watcher_reports_it(watching: Watching, path: Path) -> None:
    wake(path, "1")
    watching.arm(hints=(path.parent,))

    wake(path, "2")

    watching.until(path)
