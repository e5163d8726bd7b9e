from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from echod.runtime import process
from echod.runtime.process import find_process
from tests.daemon.watching import wait_until


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as child:
        yield child
        child.kill()


def test_a_process_is_itself_and_not_another() -> None:
    me, parent = find_process(os.getpid()), find_process(os.getppid())

    assert me is not None
    assert me == find_process(os.getpid())
    assert parent is not None
    assert parent.started != me.started


def test_a_suspended_process_is_told(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.send_signal(signal.SIGSTOP)

    wait_until(lambda: (found := find_process(sleeper.pid)) and found.suspended, "the suspension")


def test_a_zombie_and_a_gone_process_are_none(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.kill()
    wait_until(lambda: find_process(sleeper.pid) is None, "the zombie")
    sleeper.wait()

    assert find_process(sleeper.pid) is None


def test_a_name_with_spaces_and_parentheses_confuses_nobody() -> None:
    script = (
        "import ctypes, sys; ctypes.CDLL(None).prctl(15, b') Z 1 (x', 0, 0, 0); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()

        assert find_process(child.pid) is not None


def test_without_proc_psutil_tells_the_same(sleeper: subprocess.Popen[bytes]) -> None:
    found = process._find_with_psutil(sleeper.pid)

    assert found is not None
    assert found == process._find_with_psutil(sleeper.pid)
    assert not found.suspended
    assert process._find_with_psutil(2**22 + 1) is None
