from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from echod.daemon.events import Sink
from echod.daemon.watcher import Watcher
from tests.daemon.watching import Watching


@pytest.fixture
def watching() -> Iterator[Watching]:
    sink = Sink(threading.Event())
    with Watcher(sink) as watcher:
        yield Watching(watcher, sink)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    root = tmp_path / "project" / ".rune" / "echoes"
    (root / "reviewer").mkdir(parents=True)
    return root
