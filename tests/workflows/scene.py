"""A project on disk with markers of a given age, and a table of processes to go with it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from echod.workflows import (
    DeclaredWorkflow,
    GateLimits,
    GateObservations,
    ProcessState,
    ProcessStatus,
    Verdict,
    collect_observations,
    gate,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

LIVE_PID = 4242  # in the scene's table: alive since a day before now
DEAD_PID = 4343  # gone
REUSED_PID = 4444  # alive, but started a moment ago: somebody else who got an old number
UNKNOWN_PID = 4545  # nobody can tell
MINUTE = 1 / 60
"""One minute in hours, the unit of every age in a scene."""


class FakeProcessTable:
    """A table of processes that a test writes."""

    def __init__(self, table: Mapping[int, ProcessStatus]) -> None:
        self.table = dict(table)

    def lookup(self, pid: int) -> ProcessStatus:
        return self.table.get(pid, ProcessStatus(ProcessState.DEAD))


@dataclass
class Scene:
    """A project at the moment `now`. Ages are hours; nothing is younger than the case states."""

    project: Path
    now: float
    claude_home: Path
    processes: FakeProcessTable = field(init=False)
    own_writes: dict[Path, int] = field(default_factory=dict)
    declared: list[DeclaredWorkflow] = field(default_factory=list)
    last_ended: float | None = None
    stores: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        day = 86_400
        self.processes = FakeProcessTable(
            {
                LIVE_PID: ProcessStatus(ProcessState.ALIVE, self.now - 10 * day),
                REUSED_PID: ProcessStatus(ProcessState.ALIVE, self.now - 1),
                UNKNOWN_PID: ProcessStatus(ProcessState.UNKNOWN),
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

    def observe(self) -> GateObservations:
        return collect_observations(
            self.project,
            self.stores,
            claude_home=self.claude_home,
            processes=self.processes,
            changed_since=self.now - 86_400,
            own_mtime=self.own_writes.get,
            declared=self.declared,
            last_ended=self.last_ended,
        )

    def verdict(
        self, limits: GateLimits | None = None, *, later: float = 0.0, quiet_since: float | None = None
    ) -> Verdict:
        """The verdict `later` hours from now."""
        when = self.now + later * 3600
        return gate(self.observe(), when, limits or GateLimits(), quiet_since=quiet_since)
