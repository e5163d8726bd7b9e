"""A kill at any step of a promotion or of new names: nothing is lost, and the same command completes it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from echod.jobs.base import JobDone, JobOutcome, JobResources
from echod.jobs.migrate import migrate_names
from echod.jobs.solutions import promote
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document, SolutionCategory
from echod.memory.policy_model import PolicySettings
from echod.memory.solutions.promotion import PromotionRequest
from echod.remembrance.library import SolutionState, check_library, read_library
from echod.state.database import Database
from echod.state.entries import EntryStore
from echod.store.changes import no_gate
from echod.store.commit.context import CommitStep, Tracer, no_trace
from echod.store.engine import Engine
from echod.store.errors import EngineLimits
from echod.store.layout import Role, Store
from tests.remembrance.conftest import entry_text
from tests.support import run_in_child

STEPS = [
    (step, count)
    for step in (
        CommitStep.STAGED,
        CommitStep.INTENT_WRITTEN,
        CommitStep.CREATED,
        CommitStep.EXCHANGED,
        CommitStep.APPLIED,
        CommitStep.SWEPT,
    )
    for count in (1, 2)
]


class Workplace:
    """A role with an entry that a solution can be made of."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "project"
        self.role = Role(Store(self.project, self.project / ".rune/echoes"), "performance")
        self.role.path.mkdir(parents=True)
        (self.project / "tmp").mkdir()  # where the locks of all writers are
        self.role.memory.write_text(f"# Memory\n\n{entry_text(source='rune:review PR 1')}\n{entry_text('Other')}")

    def ids(self) -> list[str | None]:
        document = parse(self.role.memory.read_bytes())
        assert isinstance(document, Document)
        return list(entry_ids(self.role.name, document))

    def resources(self, database: Database, trace: Tracer, seconds_later: float) -> JobResources:
        def clock() -> float:
            return time.time() + seconds_later

        engine = Engine(self.root / "state/journal", limits=EngineLimits(), clock=clock, trace=trace)
        return JobResources(1, engine, EntryStore(database), PolicySettings(), no_gate, clock)

    def promote(self, trace: Tracer = no_trace, seconds_later: float = 0, entry: str = "") -> JobOutcome:
        request = PromotionRequest(SolutionCategory.PERFORMANCE)
        with Database.open(self.root / "state/echod.db") as database:
            resources = self.resources(database, trace, seconds_later)
            return promote(resources, self.role, entry or self.ids()[0] or "", request, sessions=0)

    def migrate(self, trace: Tracer = no_trace, seconds_later: float = 0) -> JobOutcome:
        with Database.open(self.root / "state/echod.db") as database:
            return migrate_names(self.resources(database, trace, seconds_later), self.role)


def kill_at(step: CommitStep, count: int) -> Tracer:
    seen = 0

    def kill(passed: CommitStep) -> None:
        nonlocal seen
        seen += passed is step
        if seen == count and passed is step:
            os._exit(137)

    return kill


@pytest.mark.parametrize(("step", "count"), STEPS)
def test_a_killed_promotion_is_completed_by_the_same_command(tmp_path: Path, step: CommitStep, count: int) -> None:
    """The role has the name of the category, so that both have one lock."""
    place = Workplace(tmp_path.resolve())

    run_in_child(lambda: place.promote(kill_at(step, count)))
    assert isinstance(place.promote(seconds_later=60), JobDone)

    (checked,) = check_library(read_library(place.project))
    assert checked.state is SolutionState.CURRENT
    assert place.role.memory.read_text().count("promoted_to") == 1
    assert len(place.ids()) == 2


@pytest.mark.parametrize(("step", "count"), STEPS)
def test_killed_new_names_are_completed_by_the_same_command(tmp_path: Path, step: CommitStep, count: int) -> None:
    place = Workplace(tmp_path.resolve())
    place.promote()

    run_in_child(lambda: place.migrate(kill_at(step, count)))
    assert isinstance(place.migrate(seconds_later=60), JobDone)

    (checked,) = check_library(read_library(place.project))
    assert checked.state is SolutionState.CURRENT
    assert "rune:appraise PR 1" in place.role.memory.read_text()
    assert len(place.ids()) == 2
