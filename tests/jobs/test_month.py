"""A month of a project as it is, through the real job on real files: the memory stays a good one."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from echod.jobs.base import JobDone, JobOutcome
from echod.memory.archive import ArchivedEntry, read_archive
from echod.memory.identity import entry_ids
from echod.memory.model import Layer
from echod.memory.policy_model import PolicySettings
from echod.state.database import Database
from echod.state.entries import EntryStore, Reference
from echod.state.workflow_log import WorkflowLog, WorkflowSnapshot
from tests.jobs.site import Site, site_at_noon
from tests.life.files import MEMORY_HEADER, TODAY, learning_text, observation_text

DAY = 86_400.0
DAYS = 30
OBSERVATIONS_A_DAY = 55
LIMIT = PolicySettings()
NOISE = (Layer.OBSERVATIONS, Layer.TRACED)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return site_at_noon(tmp_path)


def append(site: Site, *blocks: str) -> None:
    memory = site.role.memory
    site.write((memory.read_text() if memory.exists() else MEMORY_HEADER) + "".join(blocks))


def titles(site: Site, *layers: Layer) -> list[str]:
    entries = [block.entry for block in site.document.blocks if block.entry]
    return [entry.title for entry in entries if entry.layer in layers]


def id_of(site: Site, title: str) -> str:
    pairs = zip(site.document.blocks, entry_ids(site.role.name, site.document), strict=True)
    return next(i for block, i in pairs if i and block.entry and block.entry.title == title)


def add_reference(site: Site, title: str, workflow: str) -> None:
    """A workflow runs, and its agents use an entry."""
    project, key = str(site.role.store.project), site.role.store.key
    with Database.open(site.root / "state/echod.db") as database:
        ran = WorkflowSnapshot(workflow, "review", workflow, site.now, running=False, ended_at=site.now + 60)
        WorkflowLog(database).record(project, [ran], site.now)
        EntryStore(database).add_references(
            key, [Reference(id_of(site, title), f"workflow:{workflow}", workflow)], site.today
        )


def has_changed(outcome: JobOutcome) -> bool:
    assert isinstance(outcome, JobDone)
    return outcome.changed


def archived_entries(site: Site) -> list[ArchivedEntry]:
    files = sorted(site.role.path.glob("archive/pruned-*.md"))
    return [entry for file in files for entry in read_archive(file.read_bytes()).entries]


def test_learnings_outlive_the_noise_and_the_one_in_use_outlives_them_all(site: Site) -> None:
    """Fifty-five observations and one inscribed learning a day, pruned daily; agents use the first learning."""
    written: list[str] = []
    for number in range(DAYS):
        day = (site.today - TODAY).days
        new = [observation_text(f"task {number}-{n}", age=-day) for n in range(OBSERVATIONS_A_DAY)]
        new.append(learning_text(f"learning {number:02}", age=-day, lines=24 if number % 3 == 0 else 8))
        append(site, *new)
        written += new
        add_reference(site, "learning 00", workflow=f"review-{number}")

        assert has_changed(site.prune(job=2 * number + 1, policy=LIMIT))
        assert not has_changed(site.prune(job=2 * number + 2, policy=LIMIT)), "a second run the same day"
        text = site.role.memory.read_text()
        assert text.count("\n") <= LIMIT.memory_line_limit
        noise = [b.text for b in site.document.blocks if b.entry and b.entry.layer in NOISE]
        rest = text.count("\n") - sum(t.count("\n") for t in noise)
        room = LIMIT.memory_line_limit - rest
        assert sum(t.count("\n") for t in noise) <= max(LIMIT.noise_share * LIMIT.memory_line_limit, room)
        site.now += DAY

    learnings = titles(site, Layer.INSCRIBED)
    newest = [f"learning {number:02}" for number in range(DAYS)][1 - len(learnings) :]
    assert len(learnings) >= 12
    assert learnings == ["learning 00", *newest]
    there = "".join([site.role.memory.read_text(), *(entry.text for entry in archived_entries(site))])
    assert [block for block in written if block.rstrip() not in there] == []
    assert {entry.rule for entry in archived_entries(site)} >= {"rolled-up", "condensed", "lowest-learning"}


@pytest.mark.parametrize("jump", [3650, -400], ids=["ten years ahead", "a year back"])
def test_a_clock_that_jumps_expires_nothing_and_loses_nothing(site: Site, jump: int) -> None:
    blocks = [observation_text(f"task {n}", age=n) for n in range(5)]
    blocks += [learning_text(f"learning {n}", age=n) for n in range(3)]
    append(site, *blocks)
    site.record_entries()
    before = site.role.memory.read_bytes()

    for days in (jump, -jump, jump):
        site.now += days * DAY
        assert not has_changed(site.prune(policy=LIMIT))

    assert site.role.memory.read_bytes() == before


def test_a_project_that_slept_for_months_is_where_it_was(site: Site) -> None:
    append(site, *(observation_text(f"task {n}", age=n) for n in range(5)), learning_text("learning"))
    site.record_entries()
    with site.entries() as entries:
        entries.record_activity(str(site.role.store.project), [site.today])
    site.now += 200 * DAY
    with site.entries() as entries:
        entries.record_activity(str(site.role.store.project), [site.today])

    assert not has_changed(site.prune(policy=LIMIT))


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31", "1970-01-01", "2026-02-30", "0000-00-00", "soon", None])
def test_an_entry_with_an_absurd_date_or_none_is_as_old_as_echod_knows_it(site: Site, day: str | None) -> None:
    _, _, rest = observation_text("a task").partition("\n")
    append(site, "## Observations \u2014 Task: a task" + (f" ({day})" if day else "") + "\n" + rest)
    site.record_entries()
    with site.entries() as entries:
        entries.record_activity(str(site.role.store.project), [TODAY + timedelta(days=n) for n in range(100)])

    site.now += 59 * DAY
    assert not has_changed(site.prune(policy=LIMIT))
    site.now += DAY
    assert has_changed(site.prune(policy=LIMIT))

    assert [entry.rule for entry in archived_entries(site)] == ["expired"]
