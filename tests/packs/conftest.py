"""A registry of a team and a global store, on the disk."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from echod.jobs import packs as packing
from echod.jobs.base import Outcome
from echod.packs.check import PackState, state_of
from echod.packs.installed import PackRoom
from echod.store.changes import open_gate
from echod.store.create import make_global
from echod.store.engine import Engine
from echod.store.limits import EngineLimits


def pack_text(stack: str, version: str, *bodies: str) -> str:
    """A pack with an entry for each body."""
    entries = (
        f"## Etched \u2014 Kit: part {number} (2026-11-01)\n\n**Source**: `doc-pack:{stack}@{version}`\n"
        f"**Domain**: backend\n\n- {body}\n"
        for number, body in enumerate(bodies, 1)
    )
    return f"# {stack} Doc Pack\n\n" + "\n".join(entries)


@dataclass
class Team:
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
class Shelf:
    """A global store, the engine that writes it, and a team's registry."""

    room: PackRoom
    engine: Engine
    team: Team
    jobs: int = 0

    def state(self, stack: str) -> PackState:
        now = datetime.fromtimestamp(time.time()).astimezone()
        return state_of(self.room.installed().pack(stack), self.room.available().packs.get(stack), now, 90)

    def put(self, stack: str) -> Outcome:
        """Install or update."""
        self.jobs += 1
        role = self.room.role(stack)
        make_global(role)
        with self.engine.open_role(role) as session:
            return packing.put(self.jobs, session, self.state(stack), open_gate, time.time)

    def take(self, stack: str) -> Outcome:
        self.jobs += 1
        with self.engine.open_role(self.room.role(stack)) as session:
            return packing.take(self.jobs, session, self.state(stack).installed.raw, open_gate, time.time)

    def memory(self, stack: str) -> Path:
        return self.room.role(stack).memory


@pytest.fixture
def team(tmp_path: Path) -> Team:
    root = tmp_path / "team"
    root.mkdir()
    return Team(root)


@pytest.fixture
def shelf(tmp_path: Path, team: Team) -> Shelf:
    engine = Engine(tmp_path / "journal", limits=EngineLimits(), clock=time.time)
    return Shelf(PackRoom(tmp_path / "claude", (str(team.root),)), engine, team)
