from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from echod.daemon.status_publisher import Notifier

PID = 4711


@pytest.fixture(
    params=["path", pytest.param("abstract", marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux only"))]
)
def supervisor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """Yield a real datagram socket as systemd would open it, and its address."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.settimeout(10)
        if request.param == "path":
            address = os.path.relpath(tmp_path / "notify")
            listening.bind(address)
            yield listening, str(tmp_path / "notify")
        else:
            name = f"echod-test-{os.getpid()}-{id(listening)}"
            listening.bind(f"\0{name}")
            yield listening, f"@{name}"


def test_messages_arrive_as_the_protocol_says(supervisor: tuple[socket.socket, str]) -> None:
    listening, address = supervisor
    notifier = Notifier.from_environment({"NOTIFY_SOCKET": address}, PID)

    notifier.ready("healthy")
    notifier.status("3 jobs\nwait")
    notifier.notify_watchdog()
    notifier.reloading(12.5)
    notifier.stopping("bye")

    assert [listening.recv(4096).decode() for _ in range(5)] == [
        "READY=1\nSTATUS=healthy",
        "STATUS=3 jobs wait",
        "WATCHDOG=1",
        "RELOADING=1\nMONOTONIC_USEC=12500000",
        "STOPPING=1\nSTATUS=bye",
    ]


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "relative"}], ids=str)
def test_without_a_supervisor_nothing_is_sent(environ: dict[str, str]) -> None:
    notifier = Notifier.from_environment(environ, PID)

    assert notifier.address is None
    notifier.ready("healthy")


def test_a_supervisor_that_does_not_listen_is_no_reason_to_stop(tmp_path: Path) -> None:
    Notifier.from_environment({"NOTIFY_SOCKET": str(tmp_path / "gone")}, PID).notify_watchdog()


def test_a_supervisor_whose_queue_is_full_does_not_block(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "n"))
        notifier = Notifier(str(tmp_path / "n"), None)
        for _ in range(5000):
            notifier.notify_watchdog()


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({"WATCHDOG_USEC": "90000000"}, 90.0),
        ({"WATCHDOG_USEC": "90000000", "WATCHDOG_PID": str(PID)}, 90.0),
        ({"WATCHDOG_USEC": "90000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
    ids=str,
)
def test_the_watchdog_is_ours_only_if_the_supervisor_means_this_process(
    environ: dict[str, str], seconds: float | None
) -> None:
    notifier = Notifier.from_environment({"NOTIFY_SOCKET": "/run/notify", **environ}, PID)

    assert notifier.watchdog_seconds == seconds


@pytest.mark.parametrize(
    ("watchdog", "pace"),
    [pytest.param(None, 5.0, id="none"), pytest.param(90.0, 5.0, id="patient"), pytest.param(3.0, 1.0, id="strict")],
)
def test_a_strict_supervisor_is_notified_more_often(watchdog: float | None, pace: float) -> None:
    assert Notifier("/run/notify", watchdog).report_interval(5.0) == pace
