"""A job does exactly what its dry run shows, entry by entry, for any file and any recorded data."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from echod.app.context import open_read_context
from echod.app.services import open_services
from echod.cli.commands.prune import RoleFilePlan, plan_role_file
from echod.cli.context import CommandContext
from echod.inspection.inspect import record_entries
from echod.jobs.base import JobDone
from echod.memory.archive import ArchivedEntry, read_archive
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document
from echod.memory.redact import redact_entry
from echod.state.entries import EntryStore, Reference
from echod.state.jobs import JobKind, Need
from echod.store import layout
from echod.store.layout import Role, Store
from tests.memory import strategies
from tests.memory.policy import samples
from tests.memory.policy.test_prune_laws import ENTRIES

slow = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))

LIMIT = 100


@dataclass(frozen=True)
class Case:
    """A file, and the recorded data of its entries by position."""

    text: str
    references: Mapping[int, int] = field(default_factory=dict)
    pinned: frozenset[int] = frozenset()
    first_seen: date = samples.TODAY
    alive: int = 0


@st.composite
def memories(draw: DrawFn) -> Case:
    """Crowded files, tidy ones and broken ones; entries that were used, are pinned, are known for long."""
    crowded = st.lists(ENTRIES, min_size=5, max_size=30).map(lambda blocks: "\n".join(["# Memory\n", *blocks]))
    places = st.integers(0, 29)
    return Case(
        draw(st.one_of(crowded, crowded, crowded, strategies.well_formed_files(), strategies.damaged_files())),
        draw(st.dictionaries(places, st.integers(1, 4), max_size=4)),
        draw(st.frozensets(places, max_size=3)),
        samples.days_ago(draw(st.sampled_from([0, 40, 100, 300]))),
        draw(st.sampled_from([0, 20, 200])),
    )


@st.composite
def knowledge_files(draw: DrawFn) -> Case:
    """Knowledge files that grew too long."""
    entries = st.builds(
        samples.entry,
        st.sampled_from(["retry the lock", "lock the cache", "pool and queue", "index", "the pool"]),
        st.sampled_from(["inscribed", "inscribed", "inscribed", "etched", "notes"]),
        age=st.integers(0, 200),
        lines=st.integers(7, 20),
    )
    blocks = draw(st.lists(entries, min_size=12, max_size=30))
    return Case("\n".join(["# Reviewer Knowledge\n", *blocks, draw(strategies.opaque_sections())]))


@dataclass(frozen=True)
class Project:
    """A project and echod's own files beside it, at noon of the day of the samples."""

    root: Path

    @property
    def role(self) -> Role:
        root = self.root / "project"
        return Role(Store(root, root / ".rune/echoes"), samples.ROLE)

    @property
    def context(self) -> CommandContext:
        environ = {"HOME": str(self.root), "ECHOD_MEMORY_LINE_LIMIT": str(LIMIT), "ECHOD_KNOWLEDGE_LINE_LIMIT": "100"}
        environ |= {"ECHOD_STATE_DIR": str(self.root / "state"), "ECHOD_RUNTIME_DIR": str(self.root / "run")}
        return CommandContext({**environ, "ECHOD_QUIET_SECONDS": "0"}, self.root)

    def now(self) -> float:
        return datetime.combine(samples.TODAY, time(12)).astimezone().timestamp()

    def write(self, file: Path, case: Case) -> None:
        """Write the file, and record the data."""
        file.parent.mkdir(parents=True)
        file.write_bytes(case.text.encode())
        os.utime(file, (self.now() - 3600, self.now() - 3600))
        with open_services(
            self.context.paths, self.context.load_settings(), self.context.environ, self.now
        ) as services:
            document = parse(file.read_bytes())
            if file == self.role.memory and isinstance(document, Document):
                self._record_history(services.entries, document, case)

    def _record_history(self, entries: EntryStore, document: Document, case: Case) -> None:
        record_entries(entries, self.role, document, case.first_seen)
        ids = dict(enumerate(filter(None, entry_ids(self.role.name, document))))
        named = [
            Reference(ids[place], f"session:{number}")
            for place, count in case.references.items()
            if place in ids
            for number in range(count)
        ]
        entries.add_references(self.role.store.key, named, samples.days_ago(5))
        entries.pin(self.role.store.key, [ids[place] for place in case.pinned if place in ids], samples.TODAY)
        entries.record_activity(str(self.role.store.project), samples.every_day(case.alive))
        entries.release_first_prune(self.role.store.key, [self.role.name])

    def preview(self, kind: JobKind) -> RoleFilePlan:
        """What `echod prune --dry-run` and `echod compress --dry-run` show."""
        with open_read_context(
            self.context.paths, self.context.load_settings(), self.context.environ, self.now
        ) as read_context:
            return plan_role_file(read_context, kind, self.role, samples.TODAY)

    def run(self, kind: JobKind) -> JobDone:
        """Let the worker do it, as the service does."""
        need = Need(kind, self.role.store.key, self.role.name, "a test", "a test", self.now())
        with open_services(
            self.context.paths, self.context.load_settings(), self.context.environ, self.now
        ) as services:
            services.queue.put(need, self.now())
            finished = services.worker.run_next()
        assert finished is not None
        assert isinstance(finished.outcome, JobDone), finished.outcome
        return finished.outcome

    def archived(self) -> list[ArchivedEntry]:
        files = sorted(self.role.path.glob("archive/pruned-*.md"))
        return [entry for file in files for entry in read_archive(file.read_bytes()).entries]


@contextmanager
def project(file: str, case: Case) -> Iterator[Project]:
    made = Project(Path(tempfile.mkdtemp()).resolve())
    made.write(made.role.path / file, case)
    try:
        yield made
    finally:
        shutil.rmtree(made.root)


def blocks(file: Path) -> list[Block] | None:
    """The blocks of a file; None where it cannot be read as memory."""
    document = parse(file.read_bytes())
    return list(document.blocks) if isinstance(document, Document) else None


@slow
@given(memories())
def test_prune_does_what_its_dry_run_shows(case: Case) -> None:
    with project(layout.MEMORY, case) as here:
        memory = here.role.memory
        before = blocks(memory)

        plan = here.preview(JobKind.PRUNE)
        assert memory.read_bytes() == case.text.encode()
        if before is None:
            assert (plan.entries, plan.has_changes) == ((), False)
            return
        done = here.run(JobKind.PRUNE)

        ids = entry_ids(here.role.name, Document("", tuple(before)))
        assert [entry.id for entry in plan.entries] == [identity for identity in ids if identity]
        assert done.changed == plan.has_changes == any(entry.action != "keep" for entry in plan.entries)
        assert done.summary.startswith(plan.summary)
        action = {entry.id: entry.action for entry in plan.entries}
        learnings = {entry.id: entry.learnings for entry in plan.entries}
        staying = [(block, identity) for block, identity in zip(before, ids, strict=True)]
        staying = [(b, i) for b, i in staying if i is None or action[i] in ("keep", "condense")]
        after = blocks(memory)
        assert after is not None
        summaries = [block for block in after if "echod/roll-up" in block.text]
        assert len(summaries) <= 1
        after = [block for block in after if block not in summaries]
        assert len(after) == len(staying)
        for (old, identity), new in zip(staying, after, strict=True):
            if identity is not None and action[identity] == "condense":
                assert new.entry is not None
                assert old.entry is not None
                assert (new.entry.title, new.entry.source) == (old.entry.title, old.entry.source)
                assert len(new.text.splitlines()) <= len(old.text.splitlines())
                assert all(learning not in new.text for learning in learnings[identity] if learning.strip())
            else:
                assert new == old
        _archive_holds(here, plan, before, ids)
        assert plan.file.lines_before == _lines(case.text)
        assert plan.file.lines_after == _lines(memory.read_bytes().decode())
        knowledge = here.role.knowledge.read_text() if here.role.knowledge.exists() else ""
        told = [b for b, i in zip(before, ids, strict=True) if i and action[i] == "compress"]
        assert [b.entry.evidence for b in told if b.entry and (b.entry.evidence or "") not in knowledge] == []
        assert not here.preview(JobKind.PRUNE).has_changes, "a second run the same day would go on"


@slow
@given(knowledge_files())
def test_compress_does_what_its_dry_run_shows(case: Case) -> None:
    with project(layout.KNOWLEDGE, case) as here:
        before = blocks(here.role.knowledge)
        assert before is not None

        plan = here.preview(JobKind.COMPRESS)
        assert here.role.knowledge.read_bytes() == case.text.encode()
        done = here.run(JobKind.COMPRESS)

        ids = entry_ids(here.role.name, Document("", tuple(before)))
        assert done.changed == plan.has_changes == bool(plan.entries)
        _archive_holds(here, plan, before, ids)
        moved = {entry.id for entry in plan.entries}
        standing = iter([block.text.rstrip() for block in blocks(here.role.knowledge) or []])
        staying = [b.text.rstrip() for b, i in zip(before, ids, strict=True) if i not in moved]
        assert all(text in standing for text in staying), "what stays keeps its words and its order"
        assert plan.file.lines_before == _lines(case.text)
        assert plan.file.lines_after == _lines(here.role.knowledge.read_bytes().decode())
        assert not here.preview(JobKind.COMPRESS).has_changes


def _archive_holds(here: Project, plan: RoleFilePlan, before: list[Block], ids: tuple[str | None, ...]) -> None:
    """Assert that the archive holds exactly the planned entries, word for word and with their reasons."""
    text = {identity: redact_entry(block.text).text for block, identity in zip(before, ids, strict=True)}
    foretold = [(e.id, e.rule, e.layer, e.score, text[e.id]) for e in plan.entries if e.action != "keep"]
    found = [(e.id, e.rule, e.layer and e.layer.value, e.score, e.text) for e in here.archived()]
    assert found == foretold


def _lines(text: str) -> int:
    return text.count("\n") + (bool(text) and not text.endswith("\n"))
