"""Databases and queues for the tests of `echod.state`, on real files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from echod.state.database import Database
from echod.state.jobs import QueueView
from echod.state.queue import JobQueue
from tests.state.examples import make_queue


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "echod.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    with Database.open(path) as opened:
        yield opened


@pytest.fixture
def queue(database: Database) -> JobQueue:
    return make_queue(database)


@pytest.fixture
def view(database: Database) -> QueueView:
    return QueueView(database)
