"""A directory of archives with its database, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from echod.memory.conversation.model import ArchiveOrigin
from echod.sessions.archive_writer import SessionOutcome
from echod.sessions.archiver import Archiver, SessionSource, Summarizer
from echod.sessions.journal import Tracer, ignore_step
from echod.sessions.roots import SessionRoot
from echod.state.database import Database
from echod.state.session_log import SessionLog

NOON = 1_795_000_000.0


@dataclass
class Archives:
    """A directory of archives. The clock moves by a second with each question."""

    root: SessionRoot
    database: Database
    now: float = NOON
    jobs: int = 0
    trace: Tracer = ignore_step
    summarizer: Summarizer | None = None
    session_log: SessionLog = field(init=False)

    def __post_init__(self) -> None:
        self.session_log = SessionLog(self.database)
        self.root.create()

    def clock(self) -> float:
        self.now += 1
        return self.now

    @property
    def archiver(self) -> Archiver:
        return Archiver(self.root, self.session_log, self.clock, summarizer=self.summarizer, trace=self.trace)

    def archive(self, path: Path, *, complete: bool = True, requested: bool = False) -> SessionOutcome:
        self.jobs += 1
        source = SessionSource(path, is_complete=complete, requested=requested)
        return self.archiver.archive(source, ArchiveOrigin.SESSION, self.jobs)

    def checkpoint(self, path: Path) -> SessionOutcome:
        self.jobs += 1
        return self.archiver.archive(SessionSource(path, is_complete=False), ArchiveOrigin.CHECKPOINT, self.jobs)

    def text(self, number: int) -> str:
        return self.root.archive_path(number).read_text()

    def all_text(self) -> str:
        return "\n".join(self.text(number) for number in self.root.archives())

    def files(self) -> dict[str, bytes]:
        """Return every visible file with its content."""
        return {
            str(path.relative_to(self.root.memory)): path.read_bytes()
            for path in sorted(self.root.memory.rglob("*"))
            if path.is_file() and ".echod" not in path.parts
        }


@pytest.fixture
def archives(tmp_path: Path) -> Iterator[Archives]:
    with Database.open(tmp_path / "state" / "echod.db") as database:
        yield Archives(SessionRoot(tmp_path / "root"), database)
