from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from echod.errors import StateError
from echod.runtime.locks import (
    AlreadyRunningError,
    LockOwner,
    LockState,
    WorkerBusyError,
    daemon_lock,
    parse_lock_owner,
    read_lock_state,
    worker_lock,
)
from tests.support import until

OWNER = LockOwner(pid=os.getpid(), started="boot:1", version="0.1.0", since=1_700_000_000.0, since_monotonic=5.0)

_HOLD_SCRIPT = """
import os, sys, time
from pathlib import Path
from echod.runtime.locks import LockOwner
from echod.runtime.locks import daemon_lock
with daemon_lock(Path(sys.argv[1]), LockOwner(os.getpid(), "boot:2", "9.9.9", 1.0, 2.0)):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "daemon.lock"


@contextmanager
def _lock_held_elsewhere(path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", _HOLD_SCRIPT, str(path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        try:
            yield other
        finally:
            other.kill()


def test_one_daemon_at_a_time_and_the_second_learns_who_the_first_is(path: Path) -> None:
    with _lock_held_elsewhere(path) as other:
        with pytest.raises(AlreadyRunningError) as caught, daemon_lock(path, OWNER, seconds=0):
            pass

        assert f"process {other.pid}, version 9.9.9" in str(caught.value)
        assert caught.value.owner is not None
        assert caught.value.owner.started == "boot:2"


def test_the_lock_of_a_killed_daemon_needs_no_manual_removal(path: Path) -> None:
    with _lock_held_elsewhere(path) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()

        assert read_lock_state(path).held is False
        with daemon_lock(path, OWNER) as held:
            assert held.is_current()


def test_the_state_of_a_lock_is_seen_without_taking_it(path: Path) -> None:
    assert read_lock_state(path) == LockState(held=False, owner=None)
    assert not path.exists()

    with daemon_lock(path, OWNER):
        assert read_lock_state(path) == LockState(held=True, owner=OWNER)

    assert read_lock_state(path) == LockState(held=False, owner=OWNER)


def test_reading_the_lock_does_not_keep_a_daemon_from_starting(path: Path) -> None:
    with daemon_lock(path, OWNER):
        pass
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            read_lock_state(path)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    try:
        for _ in range(20):
            with daemon_lock(path, OWNER, seconds=20):
                pass
    finally:
        stop.set()
        for looker in lookers:
            looker.join()


def test_a_shorter_text_leaves_no_rest_of_the_longer_one(path: Path) -> None:
    with daemon_lock(path, OWNER._replace(version="0.1.0" * 40)):
        pass
    with daemon_lock(path, OWNER):
        pass

    assert parse_lock_owner(path.read_bytes()) == OWNER


@pytest.mark.parametrize("data", [b"", b"4711\n", b"[]", b'{"pid": 1}', b"\xff\x00", b"null"], ids=repr)
def test_a_lock_file_in_another_format_has_no_owner(path: Path, data: bytes) -> None:
    path.write_bytes(data)

    assert read_lock_state(path) == LockState(held=False, owner=None)
    with daemon_lock(path, OWNER):
        assert read_lock_state(path).owner == OWNER


@pytest.mark.parametrize("loss", ["deleted", "replaced", "moved away"])
def test_a_lock_whose_file_was_removed_is_lost(path: Path, loss: str) -> None:
    """Another process would lock the new file, so the first must notice."""
    with daemon_lock(path, OWNER) as held:
        assert held.is_current()
        match loss:
            case "deleted":
                path.unlink()
            case "replaced":
                path.with_name("new").touch()
                path.with_name("new").replace(path)
            case _:
                path.rename(path.with_name("away"))

        assert not held.is_current()


def test_another_thread_may_ask_whether_it_is_held(path: Path) -> None:
    answers: list[bool] = []
    with daemon_lock(path, OWNER) as held:
        asking = threading.Thread(target=lambda: answers.append(held.is_current()))
        asking.start()
        asking.join()

    assert answers == [True]
    assert not held.is_current()


def test_the_lock_file_is_private_and_stays(path: Path) -> None:
    with daemon_lock(path, OWNER):
        assert path.stat().st_mode & 0o777 == 0o600

    assert path.exists()


def test_a_missing_directory_is_an_error_with_a_fix(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="ECHOD_STATE_DIR"), daemon_lock(tmp_path / "no" / "daemon.lock", OWNER):
        pass


def test_a_symlink_in_the_lock_files_place_is_refused(path: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path.symlink_to(victim)

    with pytest.raises(StateError), daemon_lock(path, OWNER, seconds=0):
        pass

    assert victim.read_text() == "precious"


def test_waiting_for_the_worker_lock_ends_at_the_deadline(path: Path) -> None:
    with _lock_held_elsewhere(path) as other, pytest.raises(WorkerBusyError, match=str(other.pid)):  # noqa: SIM117
        with worker_lock(path, OWNER, seconds=0.1):
            pass


def test_waiting_for_the_worker_lock_can_be_cancelled(path: Path) -> None:
    with _lock_held_elsewhere(path), pytest.raises(WorkerBusyError):  # noqa: SIM117
        with worker_lock(path, OWNER, seconds=3600, cancelled=lambda: True):
            pass


def test_waiting_for_the_worker_lock_ends_when_it_is_free(path: Path) -> None:
    taken = threading.Event()

    def wait() -> None:
        with worker_lock(path, OWNER, seconds=20):
            taken.set()

    with worker_lock(path, OWNER, seconds=0):
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert not taken.wait(0.1)
    until(taken.is_set, "the worker lock")
    waiting.join()


def test_an_error_inside_releases_the_lock(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), worker_lock(path, OWNER, seconds=0):
        raise ZeroDivisionError

    assert not read_lock_state(path).held
