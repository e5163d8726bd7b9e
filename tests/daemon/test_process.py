from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from echod.runtime import system
from echod.runtime.system import find_process
from tests.support import until


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as child:
        yield child
        child.kill()


def test_a_process_equals_itself_and_no_other() -> None:
    me, parent = find_process(os.getpid()), find_process(os.getppid())

    assert me is not None
    assert me == find_process(os.getpid())
    assert parent is not None
    assert parent.started != me.started


def test_a_suspended_process_is_recognised(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.send_signal(signal.SIGSTOP)

    until(lambda: (found := find_process(sleeper.pid)) and found.suspended, "the suspension")


def test_a_zombie_and_an_ended_process_are_not_found(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.kill()
    until(lambda: find_process(sleeper.pid) is None, "the zombie")
    sleeper.wait()

    assert find_process(sleeper.pid) is None


def test_a_name_with_spaces_and_parentheses_is_parsed() -> None:
    script = (
        "import ctypes, sys; ctypes.CDLL(None).prctl(15, b') Z 1 (x', 0, 0, 0); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()

        assert find_process(child.pid) is not None


def test_without_proc_psutil_returns_the_same(sleeper: subprocess.Popen[bytes]) -> None:
    found = system._find_with_psutil(sleeper.pid)

    assert found is not None
    assert found == system._find_with_psutil(sleeper.pid)
    assert not found.suspended
    assert system._find_with_psutil(2**22 + 1) is None
