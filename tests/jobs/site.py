"""A role on the disk with echod's own files beside it, a clock that can be set, and the jobs of the policies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path

from echod.clock import local_date
from echod.inspection.inspect import get_facts, pin_restored, record_entries
from echod.inspection.secrets import list_scan_candidates
from echod.jobs import compress, consolidate, manual, prune
from echod.jobs.base import JobContext, JobOutcome, JobResources
from echod.jobs.consolidate import FindingsCache
from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.policy import Facts
from echod.memory.policy_model import PolicySettings
from echod.state.database import Database
from echod.state.entries import EntryStore
from echod.state.jobs import JobKind
from echod.store.changes import no_gate
from echod.store.commit.context import Tracer, no_trace
from echod.store.engine import Engine
from echod.store.errors import EngineLimits
from echod.store.layout import Role, Store
from tests.life.files import TODAY

POLICY = PolicySettings(memory_line_limit=100)


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
        return local_date(self.now)

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
    def entries(self) -> Iterator[EntryStore]:
        with Database.open(self.root / "state/echod.db") as database:
            yield EntryStore(database)

    def engine(self, trace: Tracer = no_trace) -> Engine:
        return Engine(self.root / "state/journal", limits=EngineLimits(), clock=lambda: self.now, trace=trace)

    def open_job(
        self,
        entries: EntryStore,
        job: int,
        *,
        policy: PolicySettings = POLICY,
        trace: Tracer = no_trace,
        allow_writes: bool = True,
    ) -> AbstractContextManager[JobContext]:
        resources = JobResources(
            job, self.engine(trace), entries, policy, no_gate, lambda: self.now, allow_writes=allow_writes
        )
        return resources.open_role(self.role)

    def prune(
        self,
        *,
        trace: Tracer = no_trace,
        release_first: bool = True,
        allow_writes: bool = True,
        job: int = 1,
        policy: PolicySettings = POLICY,
    ) -> JobOutcome:
        with self.entries() as entries:
            if release_first:
                entries.release_first_prune(self.role.store.key, [self.role.name])
            with self.open_job(entries, job, policy=policy, trace=trace, allow_writes=allow_writes) as context:
                return prune.run(context)

    def compress(self, *, job: int = 1, policy: PolicySettings = POLICY) -> JobOutcome:
        with self.entries() as entries, self.open_job(entries, job, policy=policy) as context:
            return compress.run(context)

    def consolidate(self, *, job: int = 1) -> JobOutcome:
        terms = consolidate.ConsolidateSettings(quiet_seconds=0)
        with self.entries() as entries, self.open_job(entries, job) as context:
            return consolidate.run(context, terms, FindingsCache())

    def undo(self, job: int, *, by: int, pinned: bool = True) -> None:
        undone = self.engine().undo(job, by_job=by)
        if pinned:
            with self.entries() as entries:
                until = self.today + timedelta(days=POLICY.pin_days)
                pin_restored(entries, self.role.store, JobKind.PRUNE, undone, self.today, until)

    def scrub(self, job: int) -> None:
        with self.entries() as entries, self.open_job(entries, job) as context:
            manual.scrub(context, list_scan_candidates(self.role), include_protected=True)

    def heal(self) -> None:
        """Read the role as every job does before it plans."""
        with self.engine().open_role(self.role) as session:
            session.read()

    def record_entries(self) -> None:
        """Record the entries as the service does when the file changed."""
        with self.entries() as entries:
            record_entries(entries, self.role, self.document, self.today)

    def facts(self) -> Facts:
        """Return the facts about the entries of the present file, recorded or not."""
        with self.entries() as entries:
            return get_facts(self.role, entries, POLICY, self.today, self.document)

    def archive_names(self) -> set[str]:
        return {path.name for path in (self.role.path / "archive").glob("*.md")}

    def all_text(self) -> str:
        return "".join(
            path.read_text(errors="replace")
            for path in self.role.path.rglob("*.md")
            if path.is_file() and not path.name.startswith("MEMORY-")
        )


def site_at_noon(root: Path) -> Site:
    """Return a site whose clock is at noon, so that no test crosses midnight."""
    return Site(root.resolve(), datetime.combine(TODAY, time(12)).astimezone().timestamp())
