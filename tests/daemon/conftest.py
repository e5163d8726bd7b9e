from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from echod.daemon.events import EventBuffer
from echod.daemon.watcher import Watcher
from tests.daemon.watcher_harness import WatcherHarness


@pytest.fixture
def harness() -> Iterator[WatcherHarness]:
    buffer = EventBuffer(threading.Event())
    with Watcher(buffer) as watcher:
        yield WatcherHarness(watcher, buffer)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    root = tmp_path / "project" / ".rune" / "echoes"
    (root / "reviewer").mkdir(parents=True)
    return root
