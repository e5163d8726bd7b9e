"""A registry of a team and a global store, on disk."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from echod.jobs import packs as pack_jobs
from echod.jobs.base import JobContext, JobOutcome, JobResources
from echod.memory.policy_model import PolicySettings
from echod.packs.installed import PackLocations, PackState, pack_state
from echod.state.database import Database
from echod.state.entries import EntryStore
from echod.store.changes import no_gate
from echod.store.create import create_global_role
from echod.store.engine import Engine
from echod.store.errors import EngineLimits
from echod.store.layout import Role


def pack_text(stack: str, version: str, *bodies: str) -> str:
    """A pack with an entry for each body."""
    entries = (
        f"## Etched \u2014 Kit: part {number} (2026-11-01)\n\n**Source**: `doc-pack:{stack}@{version}`\n"
        f"**Domain**: backend\n\n- {body}\n"
        for number, body in enumerate(bodies, 1)
    )
    return f"# {stack} Doc Pack\n\n" + "\n".join(entries)


@dataclass
class TeamRegistry:
    """A registry that is not the shipped one."""

    root: Path
    packs: dict[str, dict[str, object]] = field(default_factory=dict)

    def publish(self, stack: str, version: str, *bodies: str, **changed: object) -> str:
        text = pack_text(stack, version, *(bodies or ("a fact",)))
        (self.root / stack).mkdir(parents=True, exist_ok=True)
        (self.root / stack / "MEMORY.md").write_text(text)
        self.packs[stack] = {"name": stack.title(), "version": version, "last_updated": "2026-11-01", **changed}
        (self.root / "registry.json").write_text(json.dumps({"version": "1.0.0", "packs": self.packs}))
        return text


@dataclass
class PackStore:
    """A global store, the engine that writes it, and a team's registry."""

    locations: PackLocations
    engine: Engine
    team: TeamRegistry
    database_file: Path
    jobs: int = 0

    def state(self, stack: str) -> PackState:
        now = datetime.fromtimestamp(time.time()).astimezone()
        return pack_state(
            self.locations.read_installed().get(stack), self.locations.read_registries().packs.get(stack), now, 90
        )

    def install(self, stack: str) -> JobOutcome:
        """Install or update."""
        self.jobs += 1
        role = self.locations.pack_role(stack)
        create_global_role(role)
        with self.open_job(role) as context:
            return pack_jobs.install_or_update(context, self.state(stack))

    def remove(self, stack: str) -> JobOutcome:
        self.jobs += 1
        with self.open_job(self.locations.pack_role(stack)) as context:
            return pack_jobs.remove_pack(context, self.state(stack).installed.manifest_bytes)

    @contextmanager
    def open_job(self, role: Role) -> Iterator[JobContext]:
        with Database.open(self.database_file) as database:
            resources = JobResources(self.jobs, self.engine, EntryStore(database), PolicySettings(), no_gate, time.time)
            with resources.open_role(role) as context:
                yield context

    def memory(self, stack: str) -> Path:
        return self.locations.pack_role(stack).memory


@pytest.fixture
def team(tmp_path: Path) -> TeamRegistry:
    root = tmp_path / "team"
    root.mkdir()
    return TeamRegistry(root)


@pytest.fixture
def pack_store(tmp_path: Path, team: TeamRegistry) -> PackStore:
    engine = Engine(tmp_path / "journal", limits=EngineLimits(), clock=time.time)
    return PackStore(PackLocations(tmp_path / "claude", (str(team.root),)), engine, team, tmp_path / "state/echod.db")
