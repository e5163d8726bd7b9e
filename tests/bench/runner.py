"""Runs topics in processes of their own: those that measure time alone, the others side by side."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.bench.registry import Topic
from tests.bench.wire import Measured, figures_from
from tests.bench.workspace import workspace

_LOOK_SECONDS = 0.1
_SAID = 4
"""Lines of what a topic said before it failed."""


def run_all(topics: Sequence[Topic], tell: Callable[[Measured], None]) -> tuple[Measured, ...]:
    """Measure every topic; `tell` hears of each as soon as it is over. In the order of `topics`."""
    done = [_told(topic, tell) for topic in topics if topic.timed]
    side_by_side = [topic for topic in topics if not topic.timed]
    if side_by_side:
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            done += _in_turn_of_length(pool, side_by_side, tell)
    order = [topic.name for topic in topics]
    return tuple(sorted(done, key=lambda measured: order.index(measured.name)))


def _in_turn_of_length(
    pool: ThreadPoolExecutor, topics: Iterable[Topic], tell: Callable[[Measured], None]
) -> Iterable[Measured]:
    """The longest first, so that no processor waits for it in the end."""
    return pool.map(lambda topic: _told(topic, tell), sorted(topics, key=lambda topic: -topic.seconds))


def _told(topic: Topic, tell: Callable[[Measured], None]) -> Measured:
    measured = _measure(topic)
    tell(measured)
    return measured


def _measure(topic: Topic) -> Measured:
    began = time.monotonic()
    with workspace() as space, tempfile.TemporaryDirectory(prefix="echod-bench-") as scratch:
        into, said = Path(scratch) / "figures.json", Path(scratch) / "said"
        with said.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.bench.one", topic.name, into, space.disk, space.memory],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that it and all that it started can be ended together
            )
            in_time = _ended_within(process.pid, topic.seconds)
            # Not reaped yet, so its number still names its group and nobody else's.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        seconds = time.monotonic() - began
        if in_time and into.exists():
            return Measured(topic.name, topic.title, seconds, figures_from(json.loads(into.read_bytes())))
        last = said.read_text(errors="replace").strip().splitlines()[-_SAID:]
        why = "it failed:" if in_time else f"it was not over within {topic.seconds:g} s:"
        return Measured(topic.name, topic.title, seconds, None, "\n".join([why, *last]))


def _ended_within(pid: int, seconds: float) -> bool:
    """Wait for a child's end without reaping it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            return True
        time.sleep(_LOOK_SECONDS)
    return False
