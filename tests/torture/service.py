"""A service of the tests' own, which merges late writes, consolidates and archives without pause."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from echod.errors import EchodError
from echod.files import content_digest
from echod.memory.model import Document
from echod.store.changes import Append, ChangeSet, CommitResult, ConsumeFindings, Write
from echod.store.commit.context import Tracer, no_trace
from echod.store.engine import Engine, RoleView
from echod.store.errors import BusyError, EngineLimits
from echod.store.layout import Role, Store
from tests.torture.entries import HEADER, is_whole, named_entries, parse_cached, version_of

SHORT_LIMITS = EngineLimits(displaced_hours=0.0, settle_seconds=0.02)
"""Everything is closed as soon as possible, so that a short test passes through every state."""


@dataclass(frozen=True, slots=True)
class StressProject:
    """A project with one role, in which a test lets programs collide."""

    base: Path

    @property
    def store(self) -> Store:
        return Store(self.base / "project", self.base / "project/.rune/echoes")

    @property
    def role(self) -> Role:
        return Role(self.store, "reviewer")

    @property
    def memory(self) -> Path:
        return self.role.memory

    def create(self, *entries: bytes) -> None:
        """Create the project with these entries in its memory."""
        self.role.path.mkdir(parents=True)
        (self.base / "project/tmp").mkdir()
        self.memory.write_bytes(HEADER + b"".join(entries))

    def engine(self, limits: EngineLimits = SHORT_LIMITS, trace: Tracer = no_trace) -> Engine:
        return Engine(self.base / "journal", limits=limits, clock=time.time, trace=trace)

    def archives(self) -> list[Path]:
        """Return the archives without copies of the whole memory file, which would hide every loss."""
        return sorted(p for p in self.role.path.glob("archive/*.md") if not p.name.startswith("MEMORY-"))

    def findings(self) -> list[Path]:
        return sorted(p for p in self.role.path.glob("*-findings.md") if not p.name.startswith("."))

    def staged_files(self) -> list[Path]:
        return sorted(self.store.root.rglob(".*.echod-*"))

    def run_jobs(self, engine: Engine, *, keep: int, batch: int) -> bool:
        """Run the jobs of one turn and return whether anything was committed. Arguments as in `reconcile_once`."""
        try:
            with engine.open_role(self.role) as session:
                for _ in range(4):
                    view = session.read()
                    changes = plan_changes(view, keep=keep, batch=batch)
                    if changes.is_empty:
                        return False
                    outcome = session.commit(1, changes)
                    if isinstance(outcome, CommitResult):
                        return outcome.seq is not None
        except BusyError:
            return False
        return False

    def versions(self) -> Counter[str]:
        """Return the newest version of each entry in its proper place."""
        return Counter({name: version_of(text) for name, text in named_entries(self.memory.read_bytes())})

    def torn_entries(self) -> list[str]:
        """Return the entries of the memory that are not whole."""
        return [name for name, text in named_entries(self.memory.read_bytes()) if not is_whole(text)]

    def find_damage(self) -> list[str]:
        """Return further problems in the end."""
        return []


def reconcile_once(project: StressProject, engine: Engine, *, keep: int, batch: int = 2) -> bool:
    """Reconcile once and return whether anything was committed.

    Args:
        project: the project.
        engine: the engine to use.
        keep: how many entries called `p...` remain in the memory before the oldest are archived.
        batch: how many are archived at once.
    """
    merged = bool(engine.merge_late_writes(project.store))
    return project.run_jobs(engine, keep=keep, batch=batch) or merged


def plan_changes(view: RoleView, *, keep: int, batch: int) -> ChangeSet:
    """Consolidate every finding that is new, and archive the oldest entries called `p...`."""
    document = parse_cached(view.memory.text)
    if not isinstance(document, Document):
        return ChangeSet("none", view.role.name, "")
    present = {name for name, _ in named_entries(view.memory.text)}
    text = view.memory.text or HEADER
    consumes = []
    role = PurePosixPath(view.role.name)
    for found in view.findings:
        keys = []
        for name, block in named_entries(found.text):
            key = f"{name}:{content_digest(block.encode())[:12]}"
            keys.append(key)
            if name not in present and key not in view.consumed_keys:
                text = (text if text.endswith(b"\n\n") else text + b"\n\n") + block.encode() + b"\n\n"
                present.add(name)
        kept = role / "archive/findings" / f"2026-11-27-{found.path.name.removesuffix('-findings.md')}.md"
        consumes.append(ConsumeFindings(role / found.path.name, found.digest or "", kept, found.text, tuple(keys)))
    text, archived = _archive(text, keep=keep, batch=batch)
    writes = () if text == view.memory.data else (Write(role / "MEMORY.md", view.memory.digest, text),)
    if not view.memory.text and not consumes:
        writes = ()
    appends = (Append(role / "archive/pruned-2026.md", archived),) if archived else ()
    return ChangeSet("service", view.role.name, "one turn", writes, appends, tuple(consumes))


def _archive(text: bytes, *, keep: int, batch: int) -> tuple[bytes, bytes]:
    document = parse_cached(text)
    if not isinstance(document, Document):
        return text, b""
    names = [name for name, _ in named_entries(text)]
    old = [i for i, name in enumerate(names) if name.startswith("p")]
    out = set(old[:batch]) if len(old) > keep else set()
    kept = document.preamble + "".join(b.text for i, b in enumerate(document.blocks) if i not in out)
    archived = "".join(document.blocks[i].text.rstrip() + "\n\n" for i in sorted(out))
    return kept.encode(), archived.encode()


def run_naive_jobs(project: StressProject, *, keep: int, batch: int) -> bool:
    """Do the work of `reconcile_once` in the naive way: write aside and rename, check and unlink."""
    memory = project.memory.read_bytes() if project.memory.exists() else HEADER
    present = {name for name, _ in named_entries(memory)}
    text = memory
    read = {path: path.read_bytes() for path in project.findings()}
    for found in read.values():
        for name, block in named_entries(found):
            if name not in present:
                text = text.rstrip() + b"\n\n" + block.encode() + b"\n\n"
                present.add(name)
    text, archived = _archive(text, keep=keep, batch=batch)
    if text == memory and not read:
        return False
    archive = project.role.path / "archive/pruned-2026.md"
    archive.parent.mkdir(exist_ok=True)
    with archive.open("ab") as file:
        file.write(archived)
    aside = project.memory.with_name(".naive")
    aside.write_bytes(text)
    aside.rename(project.memory)
    for path, content in read.items():
        if path.exists() and path.read_bytes() == content:
            path.unlink(missing_ok=True)
    return True


def in_child(work: Callable[[], object]) -> int:
    """Fork, work in the child, and return its process id. It exits 0, or 3 after printing the error."""
    child = os.fork()
    if child:
        return child
    status = 3
    try:
        work()
        status = 0
    except EchodError:
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


__all__ = ["SHORT_LIMITS", "StressProject", "in_child", "plan_changes", "reconcile_once", "run_naive_jobs"]
