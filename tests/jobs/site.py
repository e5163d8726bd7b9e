"""A role on the disk with echod's own files beside it, a clock that can be set, and the jobs of the policies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path

from echod.clock import local_day
from echod.inspection.entry_facts import facts_of, note_entries, pin_what_came_back
from echod.inspection.secrets import candidates
from echod.jobs import compress, consolidate, prune, scrub
from echod.jobs.base import Outcome
from echod.jobs.consolidate import Reading
from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.policy import Facts, Policy
from echod.state.database import Database
from echod.state.entries import EntryLog
from echod.state.job import JobKind
from echod.store.changes import open_gate
from echod.store.commit.steps import Tracer, untraced
from echod.store.engine import Engine
from echod.store.layout import Role, Store
from echod.store.limits import EngineLimits
from tests.life.files import TODAY

POLICY = Policy(memory_line_limit=100)


@dataclass
class Site:
    """A role, and a clock that can be set."""

    root: Path
    now: float

    @property
    def role(self) -> Role:
        project = self.root / "project"
        return Role(Store(project, project / ".rune/echoes"), "reviewer")

    @property
    def today(self) -> date:
        return local_day(self.now)

    @property
    def document(self) -> Document:
        read = parse(self.role.memory.read_bytes())
        assert isinstance(read, Document)
        return read

    def write(self, text: str) -> None:
        self.role.path.mkdir(parents=True, exist_ok=True)
        self.role.memory.write_text(text)
        os.utime(self.role.memory, (self.now - 3600, self.now - 3600))

    @contextmanager
    def entries(self) -> Iterator[EntryLog]:
        with Database.open(self.root / "state/echod.db") as database:
            yield EntryLog(database)

    def engine(self, trace: Tracer = untraced) -> Engine:
        return Engine(self.root / "state/journal", limits=EngineLimits(), clock=lambda: self.now, trace=trace)

    def prune(
        self,
        *,
        trace: Tracer = untraced,
        person: bool = True,
        writes: bool = True,
        job: int = 1,
        policy: Policy = POLICY,
    ) -> Outcome:
        with self.entries() as entries:
            if person:
                entries.let_go(self.role.store.key, [self.role.name])
            with self.engine(trace).open_role(self.role) as session:
                return prune.run(job, session, entries, policy, open_gate, lambda: self.now, writes=writes)

    def compress(self, *, job: int = 1, policy: Policy = POLICY) -> Outcome:
        with self.entries() as entries, self.engine().open_role(self.role) as session:
            return compress.run(job, session, entries, policy, open_gate, lambda: self.now, writes=True)

    def consolidate(self, *, job: int = 1) -> Outcome:
        terms = consolidate.Terms(quiet_seconds=0, writes=True)
        with self.entries() as entries, self.engine().open_role(self.role) as session:
            return consolidate.run(job, session, entries, terms, Reading(), open_gate, lambda: self.now)

    def undo(self, job: int, *, by: int, pinned: bool = True) -> None:
        undone = self.engine().undo(job, by=by)
        if pinned:
            with self.entries() as entries:
                until = self.today + timedelta(days=POLICY.pin_days)
                pin_what_came_back(entries, self.role.store, JobKind.PRUNE, undone, self.today, until)

    def scrub(self, job: int) -> None:
        with self.engine().open_role(self.role) as session:
            scrub.run(job, session, candidates(self.role), confirmed=True, gate=open_gate)

    def heal(self) -> None:
        """What every job does before it plans."""
        with self.engine().open_role(self.role) as session:
            session.read()

    def look(self) -> None:
        """What the service does when the file changed."""
        with self.entries() as entries:
            note_entries(entries, self.role, self.document, self.today)

    def facts(self) -> Facts:
        """What is known of the entries of the file as it is, looked at or not."""
        with self.entries() as entries:
            return facts_of(self.role, entries, POLICY, self.today, self.document)

    def names(self) -> set[str]:
        return {path.name for path in (self.role.path / "archive").glob("*.md")}

    def everywhere(self) -> str:
        return "".join(
            path.read_text(errors="replace")
            for path in self.role.path.rglob("*.md")
            if path.is_file() and not path.name.startswith("MEMORY-")
        )


def at_noon(root: Path) -> Site:
    """A site whose clock stands at noon, so that no test meets midnight on its way."""
    return Site(root.resolve(), datetime.combine(TODAY, time(12)).astimezone().timestamp())
