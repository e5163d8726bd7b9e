"""The product's own jobs in the place of the tests' service: consolidate, prune and compress as a daemon runs them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path

from echod.jobs import compress, consolidate, prune
from echod.jobs.base import JobContext, JobDone, JobOutcome, JobResources
from echod.jobs.consolidate import FindingsCache
from echod.memory.policy import ArchivedEntry, PolicySettings, read_archive
from echod.state.database import Database
from echod.state.entries import EntryStore
from echod.store import layout
from echod.store.changes import no_gate
from echod.store.engine import Engine
from echod.store.errors import BusyError
from tests.torture.entries import HEADER, entry, is_whole, named_entries, version_of
from tests.torture.service import StressProject

_LINES_OF_AN_ENTRY = entry("x").count(b"\n")
CONSOLIDATE, PRUNE, COMPRESS = 1, 2, 3
"""The numbers of the jobs."""
_DAY = timedelta(days=1).total_seconds()


class ProductJobsProject(StressProject):
    """An arena in which the product's own jobs are at work."""

    __slots__ = ()

    def run_jobs(self, engine: Engine, *, keep: int, batch: int) -> bool:
        """One run of each job. A line limit sees to it that about `keep` entries stay; prune decides how many go."""
        del batch
        lines = HEADER.count(b"\n") + keep * _LINES_OF_AN_ENTRY
        policy = PolicySettings(memory_line_limit=lines, knowledge_line_limit=lines)
        with Database.open(self.base / "state/echod.db") as database:
            entries = EntryStore(database)
            entries.release_first_prune(self.store.key, [self.role.name])
            base = JobResources(PRUNE, engine, entries, policy, no_gate, self.shifted_time)
            jobs: list[tuple[JobResources, Callable[[JobContext], JobOutcome]]] = [
                (
                    base._replace(job_id=CONSOLIDATE, clock=time.time),
                    lambda context: consolidate.run(context, _EAGER_TERMS, FindingsCache()),
                ),
                (base, prune.run),
                (base._replace(job_id=COMPRESS), compress.run),
            ]
            did = [self._run_job(resources, job) for resources, job in jobs]
        return any(did)

    def shifted_time(self) -> float:
        """A day later for each on which entries were archived: only a part of the inscribed ones may go in a day."""
        days: set[date] = set()
        with suppress(OSError):  # that a test brought about
            days = {kept.day for kept in self.archived()}
        return time.time() + _DAY * len(days)

    def archived(self) -> list[ArchivedEntry]:
        """What the jobs put into the archive."""
        return [kept for path in self._pruned() for kept in read_archive(path.read_bytes()).entries]

    def versions(self) -> Counter[str]:
        """An entry that was pruned is in the archive as it was then."""
        found = super().versions()
        for path in self._pruned():
            found |= Counter({name: version_of(text) for name, text in named_entries(path.read_bytes())})
        return found

    def find_damage(self) -> list[str]:
        """What is wrong with the archive, from which entries are brought back without being parsed."""
        found = []
        for path in self._pruned():
            archive = read_archive(path.read_bytes())
            found += [f"damaged in the archive: {damaged.id}" for damaged in archive.damaged]
            entries = [kept for kept in archive.entries if kept.file == layout.MEMORY]
            found += [f"torn in the archive: {kept.id}" for kept in entries if not is_whole(kept.text)]
        return found

    def _pruned(self) -> list[Path]:
        return sorted(self.role.path.glob("archive/pruned-*.md"))

    def _run_job(self, resources: JobResources, job: Callable[[JobContext], JobOutcome]) -> bool:
        try:
            with resources.open_role(self.role) as context:
                outcome = job(context)
        except BusyError:
            return False
        return isinstance(outcome, JobDone) and outcome.changed


_EAGER_TERMS = consolidate.ConsolidateSettings(quiet_seconds=0.0)
