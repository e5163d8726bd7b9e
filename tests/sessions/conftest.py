"""A directory of archives with its database, and the home of a user with commands, for the tests of this folder."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import structlog
from click.testing import CliRunner

from echod.cli.root import app
from echod.errors import EchodError
from echod.hooks.spool import write_event
from echod.memory.conversation.model import ArchiveOrigin
from echod.sessions.archive_writer import SessionOutcome
from echod.sessions.archiver import Archiver, SessionSource, Summarizer
from echod.sessions.journal import Tracer, ignore_step
from echod.sessions.roots import SessionRoot
from echod.state.database import Database
from echod.state.session_log import SessionLog
from tests.sessions.generator import MadeTranscript, TranscriptMaker

NOON = 1_795_000_000.0
HOUR = 3_600.0


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


class Desk:
    """A user's home with one project, and commands in this process."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.project = (directory / "project").resolve()
        self.state = directory / "state"
        for path in (self.home, self.project):
            path.mkdir()
        self.transcripts = self.home / "claude/projects/-any-slug"

    def run(self, *words: object, code: int = 0) -> str:
        result = CliRunner().invoke(app, [str(word) for word in words], prog_name="echod")
        if isinstance(result.exception, EchodError):
            assert int(result.exception.exit_code) == code, result.exception
            return f"{result.output}{result.exception}"
        assert isinstance(result.exception, SystemExit | None), result.exception
        assert result.exit_code == code, result.output
        return result.output

    def json(self, *words: object, code: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run(*words, "--json", code=code))
        return found

    def session(self, seed: int, age: float = HOUR, prompts: int = 2, cwd: Path | None = None) -> MadeTranscript:
        """Leave a transcript that was last changed `age` seconds ago."""
        maker = TranscriptMaker(seed, str(cwd or self.project))
        for _ in range(prompts):
            maker.prompt()
            maker.answer()
        self.write(maker.made, age)
        return maker.made

    def write(self, made: MadeTranscript, age: float) -> Path:
        path = made.write(self.transcripts)
        os.utime(path, (time.time() - age,) * 2)
        return path

    @property
    def memory(self) -> Path:
        (found,) = (self.state / "data/sessions").glob("*/memory")
        return found

    def archives(self) -> list[str]:
        directories = (self.state / "data/sessions").glob("*/memory/conversations/*")
        return sorted(path.name for path in directories)

    def hook(self, event: str, **fields: object) -> None:
        payload = json.dumps({"cwd": str(self.project), **fields}).encode()
        write_event(str(self.state / "spool"), event, payload, time.time_ns(), os.getpid())


@pytest.fixture
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _restored_logging: None) -> Desk:
    for name in [name for name in os.environ if name.startswith(("ECHOD_", "CLAUDE_", "XDG_", "CODEX_"))]:
        monkeypatch.delenv(name)
    made = Desk(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("ECHOD_STATE_DIR", str(made.state))
    monkeypatch.setenv("ECHOD_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(made.home / "claude"))
    monkeypatch.setenv("ECHOD_QUIET_SECONDS", "0")
    monkeypatch.chdir(made.project)
    return made
