"""A project on the disk with markers of a given age, and a table of processes to go with it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from echod.workflows import DeclaredWorkflow, GateLimits, Life, Observations, Process, Verdict, gate, observe

if TYPE_CHECKING:
    from collections.abc import Mapping

LIVE = 4242  # in the scene's table: alive since a day before now
DEAD = 4343  # gone
LATER = 4444  # alive, but started a moment ago: somebody else who got an old number
HIDDEN = 4545  # nobody can tell
MINUTE = 1 / 60
"""One minute in hours, the unit of every age in a scene."""


class FakeProcesses:
    """A table of processes that a test writes."""

    def __init__(self, table: Mapping[int, Process]) -> None:
        self.table = dict(table)

    def look(self, pid: int) -> Process:
        return self.table.get(pid, Process(Life.GONE))


@dataclass
class Scene:
    """A project at the moment `now`. Ages are hours; nothing is younger than what the case says."""

    project: Path
    now: float
    claude_home: Path
    processes: FakeProcesses = field(init=False)
    own_writes: dict[Path, int] = field(default_factory=dict)
    declared: list[DeclaredWorkflow] = field(default_factory=list)
    last_ended: float | None = None
    stores: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        day = 86_400
        self.processes = FakeProcesses(
            {
                LIVE: Process(Life.ALIVE, self.now - 10 * day),
                LATER: Process(Life.ALIVE, self.now - 1),
                HIDDEN: Process(Life.UNKNOWN),
            }
        )

    def file(self, name: str, content: str | bytes = "", *, age: float = 1.0) -> Path:
        """A file of the project, `age` hours old; directories on the way are as old as it is."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.set_age(path, age)
        return path

    def json(self, name: str, *, age: float = 1.0, **fields: object) -> Path:
        return self.file(name, json.dumps(fields), age=age)

    def state(self, run: str = "review-abc", *, age: float = 1.0, **fields: object) -> Path:
        return self.json(f"tmp/.rune-{run}.json", age=age, **fields)

    def memory(self, role: str = "reviewer", *, age: float = 1.0, name: str = "MEMORY.md") -> Path:
        self.stores = (self.project / ".rune/echoes",)
        return self.file(f".rune/echoes/{role}/{name}", "# Reviewer Memory\n", age=age)

    def set_age(self, path: Path, age: float) -> None:
        moment = self.now - age * 3600
        os.utime(path, (moment, moment), follow_symlinks=False)

    def observe(self) -> Observations:
        return observe(
            self.project,
            self.stores,
            claude_home=self.claude_home,
            processes=self.processes,
            changed_since=self.now - 86_400,
            own_write=self.own_writes.get,
            declared=self.declared,
            last_ended=self.last_ended,
        )

    def verdict(
        self, limits: GateLimits | None = None, *, later: float = 0.0, quiet_since: float | None = None
    ) -> Verdict:
        """The verdict `later` hours from now."""
        when = self.now + later * 3600
        return gate(self.observe(), when, limits or GateLimits(), quiet_since=quiet_since)
