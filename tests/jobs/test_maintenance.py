"""The maintenance needs of memory files, derived once for each content and day, and not where git tracks them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from pathlib import Path

import pytest

from echod.inspection import InspectionCache
from echod.memory.policy_model import PolicySettings
from echod.projects.settings import MaintenancePolicy
from echod.scheduler.needs import NeedsReport
from echod.scheduler.reconcile import MaintenanceNeedFinder
from echod.state.database import Database
from echod.state.entries import EntryStore, Reference
from echod.state.jobs import JobKind
from echod.store.engine import Engine
from echod.store.errors import EngineLimits
from echod.store.layout import Role, Store
from tests.life.files import MEMORY_HEADER, TODAY, learning_text, observation_text, protected_entries

NOON = datetime.combine(TODAY, time(12)).astimezone().timestamp()
DAY = 86_400.0
CARE = MaintenancePolicy(policy=PolicySettings(), prune=True, compress=True, maintain_tracked=False)
LONG = MEMORY_HEADER + "".join(learning_text(f"learning {n}", age=n) for n in range(30))


@dataclass
class MaintenanceSite:
    role: Role
    entries: EntryStore
    finder: MaintenanceNeedFinder

    def write(self, text: str, at: float = NOON) -> None:
        self.role.memory.write_text(text)
        os.utime(self.role.memory, (at, at))

    def find(
        self,
        now: float = NOON,
        maintenance: MaintenancePolicy = CARE,
        mode: str = "maintain",
        *,
        has_pending_observations: bool = False,
    ) -> NeedsReport:
        return self.finder.find(
            self.role.store, maintenance, mode, now, has_pending_observations=has_pending_observations
        )

    def kinds(self, now: float = NOON, maintenance: MaintenancePolicy = CARE) -> list[JobKind]:
        return [need.kind for need in self.find(now, maintenance).needs]

    def restarted(self) -> MaintenanceSite:
        """As another process would look."""
        return replace(self, finder=MaintenanceNeedFinder(self.entries, self.finder._engine, InspectionCache()))

    def activity_days(self) -> set[int]:
        """How many days ago the project was alive."""
        project = str(self.role.store.project)
        facts = self.entries.get_facts(self.role.store.key, self.role.name, project, TODAY, 90)
        return {(TODAY - day).days for day in facts.alive_days}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[MaintenanceSite]:
    project = tmp_path.resolve() / "project"
    role = Role(Store(project, project / ".rune/echoes"), "reviewer")
    role.path.mkdir(parents=True)
    engine = Engine(tmp_path / "journal", limits=EngineLimits(), clock=lambda: NOON)
    with Database.open(tmp_path / "state/echod.db") as database:
        entries = EntryStore(database)
        yield MaintenanceSite(role, entries, MaintenanceNeedFinder(entries, engine, InspectionCache()))


def test_a_file_over_its_limit_is_to_be_pruned(site: MaintenanceSite) -> None:
    site.write(LONG)

    (need,) = site.find().needs

    assert (need.kind, need.role, need.due) == (JobKind.PRUNE, "reviewer", NOON)
    assert "6 learnings moved to knowledge.md" in need.reason


def test_what_cannot_get_shorter_calls_for_nothing(site: MaintenanceSite) -> None:
    site.write(MEMORY_HEADER + protected_entries(40))

    assert site.kinds() == []


def test_the_same_file_is_the_same_input_that_day_and_another_one_the_next(site: MaintenanceSite) -> None:
    site.write(LONG)

    names = [s.find(NOON + later).needs[0].fingerprint for s in (site, site.restarted()) for later in (0, 60, DAY)]

    assert names[:3] == names[3:]
    assert names[0] == names[1] != names[2]


def test_what_was_only_reported_is_another_input(site: MaintenanceSite) -> None:
    site.write(LONG)

    assert site.find(mode="report").needs[0].fingerprint != site.find().needs[0].fingerprint


def test_an_observation_expires_on_its_day_without_anyone_touching_the_file(site: MaintenanceSite) -> None:
    site.write(MEMORY_HEADER + observation_text("a review", age=0) + learning_text("money is in cents"))
    site.find()
    project = str(site.role.store.project)
    site.entries.record_activity(project, [TODAY + timedelta(days=n) for n in range(61)])

    assert site.kinds(NOON + 59 * DAY) == []
    assert site.kinds(NOON + 60 * DAY) == [JobKind.PRUNE]


def test_a_project_that_slept_forgets_nothing(site: MaintenanceSite) -> None:
    site.write(MEMORY_HEADER + observation_text("a review", age=0))
    site.find()

    assert site.kinds(NOON + 300 * DAY) == []


def test_an_observation_with_three_references_is_to_be_promoted_once(site: MaintenanceSite) -> None:
    site.write(MEMORY_HEADER + observation_text("a review"))
    site.find()
    store = site.role.store.key
    (entry,) = site.entries.get_facts(store, "reviewer", "", TODAY, 90).histories

    for session in ("one", "two"):
        site.entries.add_references(store, [Reference(entry, session)], TODAY)
    assert site.kinds() == []
    site.entries.add_references(store, [Reference(entry, "three")], TODAY)

    assert site.kinds() == [JobKind.PROMOTE]
    assert site.find().needs == site.restarted().find().needs


@pytest.mark.parametrize(
    ("maintenance", "kinds"),
    [
        (CARE, [JobKind.PRUNE, JobKind.COMPRESS]),
        (CARE._replace(prune=False), [JobKind.COMPRESS]),
        (CARE._replace(compress=False), [JobKind.PRUNE]),
        (CARE._replace(policy=PolicySettings(memory_line_limit=1000)), [JobKind.COMPRESS]),
    ],
    ids=["all", "no prune", "no compress", "more lines"],
)
def test_a_project_may_want_less(site: MaintenanceSite, maintenance: MaintenancePolicy, kinds: list[JobKind]) -> None:
    site.write(LONG)
    site.role.knowledge.write_text(MEMORY_HEADER + "".join(learning_text(f"learning {n}", lines=9) for n in range(60)))

    assert site.kinds(maintenance=maintenance) == kinds


def test_tracked_files_are_left_to_the_user_unless_the_project_allows_it(site: MaintenanceSite) -> None:
    site.write(LONG)
    project = site.role.store.project
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    assert site.kinds() == [JobKind.PRUNE]

    subprocess.run(["git", "-C", str(project), "add", "."], check=True)

    assert site.kinds() == []
    assert site.kinds(maintenance=CARE._replace(maintain_tracked=True)) == [JobKind.PRUNE]


def test_what_git_may_track_is_left_to_people_too(site: MaintenanceSite) -> None:
    site.write(LONG)
    git = site.role.store.project / ".git"
    git.mkdir()
    (git / "index").write_bytes(b"nothing that can be read")

    assert site.kinds() == []


class TestAlive:
    def test_on_the_days_on_which_others_wrote(self, site: MaintenanceSite) -> None:
        site.write(MEMORY_HEADER, NOON - 40 * DAY)
        findings = site.role.path / "ward-findings.md"
        findings.write_text("x")
        os.utime(findings, (NOON - 2 * DAY, NOON - 2 * DAY))

        site.find()

        assert site.activity_days() == {40, 2}

    def test_not_by_what_echod_wrote(self, site: MaintenanceSite, monkeypatch: pytest.MonkeyPatch) -> None:
        site.write(MEMORY_HEADER)
        own = {site.role.memory: site.role.memory.stat().st_mtime_ns}
        monkeypatch.setattr(Engine, "own_mtimes", lambda _self, _store: own)

        site.find()

        assert site.activity_days() == set()

    def test_when_agents_report(self, site: MaintenanceSite) -> None:
        site.find(has_pending_observations=True)

        assert site.activity_days() == {0}

    def test_a_time_in_the_future_is_today(self, site: MaintenanceSite) -> None:
        site.write(MEMORY_HEADER, NOON + 90 * DAY)

        site.find()

        assert site.activity_days() == {0}


@pytest.mark.parametrize("data", [b"\xff\xfe\x00broken", b"a\x00b"], ids=["not text", "zero bytes"])
def test_what_is_no_memory_calls_for_nothing(site: MaintenanceSite, data: bytes) -> None:
    site.role.memory.write_bytes(data)

    assert site.find() == NeedsReport((), ())


def test_a_role_that_is_no_memory_does_not_keep_the_others(site: MaintenanceSite) -> None:
    site.write(LONG)
    other = site.role.path.with_name("workers")
    other.mkdir()
    (other / "MEMORY.md").mkdir()
    (other / "knowledge.md").symlink_to(site.role.memory)

    assert site.kinds() == [JobKind.PRUNE]
