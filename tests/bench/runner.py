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
from tests.bench.wire import TopicResult, figures_from_dict
from tests.bench.workspace import workspace

_POLL_SECONDS = 0.1
_MAX_ERROR_LINES = 4
"""Lines of what a topic said before it failed."""


def run_all(topics: Sequence[Topic], on_result: Callable[[TopicResult], None]) -> tuple[TopicResult, ...]:
    """Measure every topic; `on_result` hears of each as soon as it is over. In the order of `topics`."""
    done = [_measure_and_report(topic, on_result) for topic in topics if topic.timed]
    side_by_side = [topic for topic in topics if not topic.timed]
    if side_by_side:
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            done += _longest_first(pool, side_by_side, on_result)
    order = [topic.name for topic in topics]
    return tuple(sorted(done, key=lambda measured: order.index(measured.name)))


def _longest_first(
    pool: ThreadPoolExecutor, topics: Iterable[Topic], on_result: Callable[[TopicResult], None]
) -> Iterable[TopicResult]:
    """The longest first, so that no processor waits for it in the end."""
    return pool.map(
        lambda topic: _measure_and_report(topic, on_result), sorted(topics, key=lambda topic: -topic.seconds)
    )


def _measure_and_report(topic: Topic, on_result: Callable[[TopicResult], None]) -> TopicResult:
    measured = _measure(topic)
    on_result(measured)
    return measured


def _measure(topic: Topic) -> TopicResult:
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
            in_time = _wait_for_end(process.pid, topic.seconds)
            # Not reaped yet, so its number still names its group and nobody else's.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        seconds = time.monotonic() - began
        if in_time and into.exists():
            return TopicResult(topic.name, topic.title, seconds, figures_from_dict(json.loads(into.read_bytes())))
        last = said.read_text(errors="replace").strip().splitlines()[-_MAX_ERROR_LINES:]
        why = "it failed:" if in_time else f"it was not over within {topic.seconds:g} s:"
        return TopicResult(topic.name, topic.title, seconds, None, "\n".join([why, *last]))


def _wait_for_end(pid: int, seconds: float) -> bool:
    """Wait for a child's end without reaping it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            return True
        time.sleep(_POLL_SECONDS)
    return False
