"""Run the product's own jobs in place of the tests' service.

They consolidate, prune and compress as a daemon does.
"""

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
from echod.memory.archive import ArchivedEntry, read_archive
from echod.memory.policy_model import PolicySettings
from echod.state.database import Database
from echod.state.entries import EntryStore
from echod.store import layout
from echod.store.changes import no_gate
from echod.store.engine import Engine
from echod.store.errors import BusyError
from tests.torture.entries import HEADER, entry, is_shortened, is_whole, name_of, named_entries, version_of
from tests.torture.service import StressProject

_LINES_OF_AN_ENTRY = entry("x").count(b"\n")
CONSOLIDATE, PRUNE, COMPRESS = 1, 2, 3
"""The numbers of the jobs."""
_DAY = timedelta(days=1).total_seconds()
WholeRecords = dict[str, list[str]]


class ProductJobsProject(StressProject):
    """A stress project in which the product's own jobs run."""

    __slots__ = ()

    def run_jobs(self, engine: Engine, *, keep: int, batch: int) -> bool:
        """Run each job once. The line limit has room for `keep` whole entries; prune decides how it makes room."""
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
            changed = [self._run_job(resources, job) for resources, job in jobs]
        return any(changed)

    def shifted_time(self) -> float:
        """Return a time one day later for each day with archived entries, since prune has a limit for each day."""
        days: set[date] = set()
        with suppress(OSError):  # which a test caused
            days = {entry.day for entry in self.archived()}
        return time.time() + _DAY * len(days)

    def archived(self) -> list[ArchivedEntry]:
        """Return the entries that the jobs archived."""
        return [entry for path in self._pruned() for entry in read_archive(path.read_bytes()).entries]

    def versions(self) -> Counter[str]:
        """Return the newest version of each entry. A pruned entry is in the archive as it was then."""
        newest = super().versions()
        for path in self._pruned():
            newest |= Counter({name: version_of(text) for name, text in named_entries(path.read_bytes())})
        return newest

    def torn_entries(self) -> list[str]:
        """Return the entries of the memory that are neither whole nor the short form of one that is in the archive."""
        whole = self._whole_records()
        return [name for name, text in named_entries(self.memory.read_bytes()) if not _is_kept(text, whole)]

    def find_damage(self) -> list[str]:
        """Return the problems of the archive, from which entries are restored without being parsed."""
        problems, whole = [], self._whole_records()
        for path in self._pruned():
            archive = read_archive(path.read_bytes())
            problems += [f"damaged in the archive: {damaged.id}" for damaged in archive.damaged]
            entries = [entry for entry in archive.entries if entry.file == layout.MEMORY]
            problems += [f"torn in the archive: {entry.id}" for entry in entries if not _is_kept(entry.text, whole)]
        return problems

    def _whole_records(self) -> WholeRecords:
        """Return the whole texts in the archive by the names of their entries."""
        records: WholeRecords = {}
        for archived in self.archived():
            if archived.file == layout.MEMORY and is_whole(archived.text):
                records.setdefault(name_of(archived.text), []).append(archived.text)
        return records

    def _pruned(self) -> list[Path]:
        return sorted(self.role.path.glob("archive/pruned-*.md"))

    def _run_job(self, resources: JobResources, job: Callable[[JobContext], JobOutcome]) -> bool:
        try:
            with resources.open_role(self.role) as context:
                outcome = job(context)
        except BusyError:
            return False
        return isinstance(outcome, JobDone) and outcome.changed


def _is_kept(text: str, whole: WholeRecords) -> bool:
    """Return whether an entry is whole, or prune shortened it and the archive has the whole text of that version."""
    return is_whole(text) or any(is_shortened(text, record) for record in whole.get(name_of(text), ()))


_EAGER_TERMS = consolidate.ConsolidateSettings(quiet_seconds=0.0)
