"""A project with a store, a state directory beside it, and the services of the observe job."""

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
from echod.inbox.inbox import Inbox, InboxSettings
from echod.inbox.spool import Spool
from echod.jobs import observe
from echod.jobs.base import JobOutcome, JobResources
from echod.memory.document import parse
from echod.memory.model import Document, Form
from echod.memory.policy_model import PolicySettings
from echod.projects.discovery import ProjectLocator
from echod.settings.schema import DEFAULT_TEAMS
from echod.state.database import Database
from echod.state.entries import EntryStore
from echod.state.session_log import EventCount, HookEventLog
from echod.store.changes import CommitGate, no_gate
from echod.store.engine import Engine
from echod.store.errors import EngineLimits
from echod.store.layout import Role, Store


@dataclass
class OpenServices:
    """The services of one process."""

    workspace: Workspace
    inbox: Inbox
    event_log: HookEventLog
    engine: Engine
    entries: EntryStore

    def refresh(self) -> frozenset[str]:
        return self.inbox.refresh(self.workspace.clock())

    def observe(self, role: str, *, allow_writes: bool = True, gate: CommitGate = no_gate) -> JobOutcome:
        resources = JobResources(
            1, self.engine, self.entries, PolicySettings(), gate, self.workspace.clock, allow_writes=allow_writes
        )
        with resources.open_role(Role(self.workspace.store, role)) as context:
            return observe.run(context, observe.ObserveContext(self.inbox, self.event_log))

    def outcomes(self) -> dict[str, int]:
        """Return the number of completed tasks by outcome."""
        return {count.outcome: count.count for count in self.list_counts() if count.event == "task-completed"}

    def list_counts(self) -> tuple[EventCount, ...]:
        return self.event_log.list_counts()


@dataclass
class Workspace:
    """A project on the disk and echod's own files."""

    root: Path
    registered: list[Path] = field(default_factory=list)
    teams: tuple[str, ...] = DEFAULT_TEAMS
    observations_enabled: bool = True
    auto_register: bool = False
    spooled_count: int = 0

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

    def spool_event(self, event: Mapping[str, Any] | bytes, kind: str = "task-completed") -> None:
        """Write an event as a hook does."""
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        self.spooled_count += 1
        assert written.write_event(str(self.spool), kind, data, time.time_ns(), os.getpid() + self.spooled_count)

    def count_waiting(self) -> int:
        return len(Spool(self.spool).list_events())

    def subjects(self, role: str = "orchestrator") -> list[str]:
        """The subjects of the observations in a role's memory."""
        document = parse(self.memory(role).read_bytes())
        assert isinstance(document, Document)
        entries = [block.entry for block in document.blocks if block.entry]
        return [entry.title for entry in entries if entry.form is Form.OBSERVATION]

    @contextmanager
    def open_services(self) -> Iterator[OpenServices]:
        rules = InboxSettings(
            teams=self.teams,
            projects=lambda: self.registered,
            register=self.registered.append if self.auto_register else None,
            observations_enabled=lambda _: self.observations_enabled,
            locator=ProjectLocator(self.home, self.home / ".claude"),
        )
        with Database.open(self.root / "state/echod.db") as database:
            observed = HookEventLog(database)
            inbox = Inbox(Spool(self.spool), observed, rules)
            engine = Engine(self.root / "state/journal", limits=EngineLimits(), clock=self.clock)
            yield OpenServices(self, inbox, observed, engine, EntryStore(database))


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path.resolve()
    made = Workspace(root)
    made.registered.append(made.project)
    for name in ("orchestrator", "reviewer", "workers"):
        made.role(name)
    return made
