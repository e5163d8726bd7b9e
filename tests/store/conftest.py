"""A real project in a temporary directory, an engine on it, and processes that die at a given step."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from echod.store.changes import Append, ChangeSet, ConsumeFindings, Write
from echod.store.commit.context import CommitStep, Tracer, no_trace
from echod.store.engine import Engine, RoleView
from echod.store.errors import EngineLimits
from echod.store.layout import Role, Store

HEADER = b"<!-- echo-schema: v1 -->\n# Reviewer Memory\n\n"


def entry(title: str, body: str = "Learned.", layer: str = "Inscribed") -> bytes:
    """Return an entry in the layer heading form."""
    return f"## {layer} \u2014 {title} (2026-11-01)\n\n**Source**: `test`\n\n{body}\n\n".encode()


@dataclass
class Sandbox:
    """A project with one role, and the journal of an engine beside it."""

    project: Path
    journal: Path
    limits: EngineLimits
    clock_offset: float = 0.0

    @property
    def store(self) -> Store:
        return Store(self.project, self.project / ".rune/echoes")

    @property
    def role(self) -> Role:
        return Role(self.store, "reviewer")

    @property
    def memory(self) -> Path:
        return self.role.memory

    @property
    def archive(self) -> Path:
        return self.role.path / "archive"

    def engine(self, trace: Tracer = no_trace, **limits: float) -> Engine:
        return Engine(self.journal, limits=self.limits._replace(**limits), clock=self.clock, trace=trace)  # type: ignore[arg-type]

    def clock(self) -> float:
        return time.time() + self.clock_offset

    def findings(self, agent: str, *blocks: bytes) -> Path:
        path = self.role.path / f"{agent}-findings.md"
        path.write_bytes(b"".join(blocks))
        return path

    @property
    def private(self) -> Path:
        return self.store.root / ".echod"

    def hidden_names(self) -> list[str]:
        """Return the names of staged, displaced and claimed files, and of any dot-file in the role."""
        held = [path for path in self.private.glob(".*") if path.name != ".gitignore"]
        return sorted(p.name for p in (*held, *self.role.path.glob(".*")))

    def visible_files(self) -> dict[str, bytes]:
        """Return every visible file of the role."""
        return {
            str(p.relative_to(self.role.path)): p.read_bytes()
            for p in sorted(self.role.path.rglob("*"))
            if p.is_file() and not p.name.startswith(".")
        }


def plan_consolidation(view: RoleView, *, archive: bytes = b"") -> ChangeSet:
    """Plan a job of the tests' own: append every finding to the memory, consume the files, archive `archive`."""
    text = view.memory.text or HEADER
    new = [f for f in view.findings if f.text]
    for finding in new:
        text += finding.text
    role = view.role.name
    return ChangeSet(
        "consolidate",
        role,
        f"{len(new)} files",
        (Write(PurePosixPath(role, "MEMORY.md"), view.memory.digest, text),),
        (Append(PurePosixPath(role, "archive/pruned-2026.md"), archive),) if archive else (),
        tuple(
            ConsumeFindings(
                PurePosixPath(role, f.path.name),
                f.digest or "",
                PurePosixPath(role, "archive/findings", f"2026-11-27-{f.path.stem}.md"),
                f.text,
                (f"key-{f.digest}",),
            )
            for f in view.findings
        ),
    )


def die_at(step: CommitStep) -> Callable[[CommitStep], None]:
    """Return a tracer that ends the process at a step, as kill -9 would."""

    def trace(passed: CommitStep) -> None:
        if passed is step:
            os._exit(137)

    return trace


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    project = (tmp_path / "project").resolve()
    sandbox = Sandbox(project, tmp_path / "journal", EngineLimits())
    sandbox.role.path.mkdir(parents=True)
    (project / "tmp").mkdir()
    sandbox.memory.write_bytes(HEADER + entry("First") + entry("Second"))
    return sandbox
