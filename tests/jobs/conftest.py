"""A project with a store, a state directory beside it, and all that the observe job works with."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from echod.hooks import spool as written
from echod.inbox.inbox import Inbox, Rules
from echod.inbox.spool import Spool
from echod.jobs import observe
from echod.jobs.base import Outcome
from echod.memory.document import parse
from echod.memory.model import Document, Form
from echod.settings.values import TEAMS
from echod.state.database import Database
from echod.state.hook_events import Heard, ObservedLog
from echod.store.changes import Gate, open_gate
from echod.store.engine import Engine
from echod.store.layout import Role, Store
from echod.store.limits import EngineLimits


@dataclass
class Office:
    """What one process has open."""

    place: Place
    inbox: Inbox
    observed: ObservedLog
    engine: Engine

    def sort(self) -> frozenset[str]:
        return self.inbox.sort(self.place.clock())

    def observe(self, role: str, *, writes: bool = True, gate: Gate = open_gate) -> Outcome:
        desk = observe.Desk(self.inbox, self.observed)
        with self.engine.open_role(Role(self.place.store, role)) as session:
            return observe.run(1, session, desk, gate, self.place.clock, writes=writes)

    def outcomes(self) -> dict[str, int]:
        """How often what became of completed tasks."""
        return {heard.outcome: heard.count for heard in self.heard() if heard.event == "task-completed"}

    def heard(self) -> tuple[Heard, ...]:
        return self.observed.heard()


@dataclass
class Place:
    """A project on the disk and echod's own files."""

    root: Path
    registered: list[Path] = field(default_factory=list)
    teams: tuple[str, ...] = TEAMS
    wanted: bool = True
    registers: bool = False
    told: int = 0

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def store(self) -> Store:
        return Store(self.project, self.project / ".rune/echoes")

    @property
    def spool(self) -> Path:
        return self.root / "state/spool"

    @property
    def home(self) -> Path:
        return self.root / "home"

    def clock(self) -> float:
        return time.time()

    def memory(self, role: str) -> Path:
        return Role(self.store, role).memory

    def role(self, name: str, store: Path | None = None) -> Path:
        directory = (store or self.store.root) / name
        directory.mkdir(parents=True)
        (directory / "MEMORY.md").write_text(f"# {name.title()} Memory\n")
        return directory

    def tell(self, event: Mapping[str, Any] | bytes, kind: str = "task-completed") -> None:
        """What a hook does."""
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        self.told += 1
        assert written.write(str(self.spool), kind, data, time.time_ns(), os.getpid() + self.told)

    def waiting(self) -> int:
        return len(Spool(self.spool).waiting())

    def subjects(self, role: str = "orchestrator") -> list[str]:
        """The subjects of the observations in a role's memory."""
        document = parse(self.memory(role).read_bytes())
        assert isinstance(document, Document)
        entries = [block.entry for block in document.blocks if block.entry]
        return [entry.title for entry in entries if entry.form is Form.OBSERVATION]

    @contextmanager
    def office(self) -> Iterator[Office]:
        rules = Rules(
            teams=self.teams,
            projects=lambda: self.registered,
            register=self.registered.append if self.registers else None,
            wanted=lambda _: self.wanted,
            global_store=self.home / ".claude/echoes",
        )
        with Database.open(self.root / "state/echod.db") as database:
            observed = ObservedLog(database)
            inbox = Inbox(Spool(self.spool), observed, rules)
            engine = Engine(self.root / "state/journal", limits=EngineLimits(), clock=self.clock)
            yield Office(self, inbox, observed, engine)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root = tmp_path.resolve()
    made = Place(root)
    made.registered.append(made.project)
    for name in ("orchestrator", "reviewer", "workers"):
        made.role(name)
    return made
