"""Workflows are counted once, however often and by whomever their markers are rewritten."""

from __future__ import annotations

from datetime import date

import pytest

from echod.state.database import Database
from echod.state.entries import EntryStore
from echod.state.workflow_log import WorkflowChanges, WorkflowDeclaration, WorkflowLog, WorkflowSnapshot
from tests.state.examples import NOW

PROJECT = "/home/user/src/shop"
DAY = 86_400.0


@pytest.fixture
def log(database: Database) -> WorkflowLog:
    return WorkflowLog(database)


def running_workflow(key: str = "review-1", started: float | None = None) -> WorkflowSnapshot:
    return WorkflowSnapshot(key, "review", key, started, running=True, ended_at=None)


def ended_workflow(key: str = "review-1", at: float | None = None, started: float | None = None) -> WorkflowSnapshot:
    return WorkflowSnapshot(key, "review", key, started, running=False, ended_at=at)


def count_workflows(database: Database, days: int = 1, *, later: int = 0) -> int:
    """How many workflows of the project count for the policies that look back so many days, some days later."""
    today = date.fromtimestamp(NOW + later * DAY)  # noqa: DTZ012  the local day, as the product's own
    return EntryStore(database).get_facts("store", "role", PROJECT, today, days).workflows_seen


class TestSeen:
    def test_a_workflow_counts_once_however_often_it_is_seen(self, log: WorkflowLog, database: Database) -> None:
        assert log.record(PROJECT, [running_workflow()], NOW) == WorkflowChanges(started_keys=("review-1",))
        for later in range(1, 5):
            assert log.record(PROJECT, [running_workflow()], NOW + later) == WorkflowChanges()

        assert count_workflows(database) == 1
        assert log.last_ended(PROJECT) is None

    def test_its_end_is_noted_once_and_as_its_markers_say(self, log: WorkflowLog) -> None:
        log.record(PROJECT, [running_workflow()], NOW)

        assert log.record(PROJECT, [ended_workflow(at=NOW + 5)], NOW + 9) == WorkflowChanges(ended_keys=("review-1",))
        assert log.record(PROJECT, [ended_workflow(at=NOW + 8)], NOW + 10) == WorkflowChanges()

        assert log.last_ended(PROJECT) == NOW + 5

    def test_an_end_that_does_not_say_when_is_now(self, log: WorkflowLog) -> None:
        log.record(PROJECT, [running_workflow()], NOW)

        log.record(PROJECT, [ended_workflow()], NOW + 9)

        assert log.last_ended(PROJECT) == NOW + 9

    def test_an_end_in_the_future_is_now(self, log: WorkflowLog) -> None:
        log.record(PROJECT, [ended_workflow(at=NOW + DAY)], NOW)

        assert log.last_ended(PROJECT) == NOW

    def test_a_workflow_whose_markers_were_cleaned_away_has_ended(self, log: WorkflowLog) -> None:
        log.record(PROJECT, [running_workflow("a"), running_workflow("b")], NOW)

        assert log.record(PROJECT, [running_workflow("b")], NOW + 9) == WorkflowChanges(ended_keys=("a",))

        assert log.last_ended(PROJECT) == NOW + 9

    def test_what_is_left_of_an_old_workflow_is_no_new_one(self, log: WorkflowLog, database: Database) -> None:
        """On the day of installation the disk is full of them."""
        log.record(PROJECT, [ended_workflow("old", at=NOW - 100 * DAY, started=NOW - 101 * DAY)], NOW)

        assert log.last_ended(PROJECT) == NOW - 100 * DAY
        assert count_workflows(database, 90) == 0
        assert count_workflows(database, 102) == 1

    def test_one_that_began_and_ended_between_two_looks_counts(self, log: WorkflowLog, database: Database) -> None:
        assert log.record(PROJECT, [ended_workflow(at=NOW - 3)], NOW) == WorkflowChanges(ended_keys=("review-1",))

        assert count_workflows(database) == 1

    def test_a_resumed_workflow_is_the_same_one(self, log: WorkflowLog, database: Database) -> None:
        log.record(PROJECT, [running_workflow()], NOW)
        log.record(PROJECT, [], NOW + 1)

        assert log.record(PROJECT, [running_workflow()], NOW + 2) == WorkflowChanges(started_keys=("review-1",))

        assert log.last_ended(PROJECT) is None
        assert count_workflows(database) == 1

    def test_a_start_in_the_future_does_not_count_before_it_was_seen(
        self, log: WorkflowLog, database: Database
    ) -> None:
        log.record(PROJECT, [running_workflow(started=NOW + 365 * DAY)], NOW)

        assert count_workflows(database, 1, later=2) == 0

    def test_projects_do_not_mix(self, log: WorkflowLog) -> None:
        log.record(PROJECT, [running_workflow()], NOW)
        log.record("/other", [running_workflow()], NOW)
        log.record("/other", [], NOW + 1)

        assert log.last_ended(PROJECT) is None
        assert log.last_ended("/other") == NOW + 1
        assert log.record(PROJECT, [running_workflow()], NOW + 2) == WorkflowChanges()

    def test_a_look_that_shows_nothing_new_writes_nothing(self, log: WorkflowLog, database: Database) -> None:
        log.record(PROJECT, [running_workflow("a"), ended_workflow("b", at=NOW)], NOW)
        file = database.path.with_name("echod.db-wal")
        before = (file.stat().st_size, file.stat().st_mtime_ns)

        for later in range(1, 4):
            log.record(PROJECT, [running_workflow("a"), ended_workflow("b", at=NOW + later)], NOW + later)
            log.record("/other", [], NOW + later)

        assert (file.stat().st_size, file.stat().st_mtime_ns) == before


class TestAnnounced:
    def test_it_lasts_until_it_is_ended(self, log: WorkflowLog, database: Database) -> None:
        log.begin(PROJECT, "deploy", pid=7, pid_started=NOW - 9, until=NOW + 60, now=NOW)
        assert log.list_declared(PROJECT, NOW + 1) == (WorkflowDeclaration("deploy", 7, NOW - 9, NOW, NOW + 60),)

        assert log.end(PROJECT, "deploy", NOW + 2)

        assert log.list_declared(PROJECT, NOW + 3) == ()
        assert log.last_ended(PROJECT) == NOW + 2
        assert count_workflows(database) == 1

    def test_it_lasts_until_its_time_is_over(self, log: WorkflowLog) -> None:
        log.begin(PROJECT, "deploy", pid=None, pid_started=None, until=NOW + 60, now=NOW)

        assert log.list_declared(PROJECT, NOW + 59) != ()
        assert log.list_declared(PROJECT, NOW + 60) == ()
        assert log.record(PROJECT, [], NOW + 99).ended_keys == (f"declared:deploy:{NOW:.0f}",)
        assert log.last_ended(PROJECT) == NOW + 60

    def test_ending_an_unknown_workflow_returns_false(self, log: WorkflowLog) -> None:
        assert not log.end(PROJECT, "deploy", NOW)

        log.begin(PROJECT, "deploy", pid=None, pid_started=None, until=NOW + 60, now=NOW)

        assert not log.end("/other", "deploy", NOW + 1)
        assert not log.end(PROJECT, "deploy", NOW + 61)
        assert log.last_ended(PROJECT) == NOW + 60

    def test_announced_again_it_is_the_same_with_another_end(self, log: WorkflowLog, database: Database) -> None:
        log.begin(PROJECT, "deploy", pid=7, pid_started=NOW - 9, until=NOW + 60, now=NOW)

        log.begin(PROJECT, "deploy", pid=8, pid_started=NOW - 1, until=NOW + 600, now=NOW + 5)

        assert log.list_declared(PROJECT, NOW + 6) == (WorkflowDeclaration("deploy", 8, NOW - 1, NOW, NOW + 600),)
        assert count_workflows(database) == 1

    @pytest.mark.parametrize("later", [0.2, 30.0, 100.0])
    def test_after_its_end_it_can_be_declared_again(self, log: WorkflowLog, database: Database, later: float) -> None:
        log.begin(PROJECT, "deploy", pid=None, pid_started=None, until=NOW + 60, now=NOW)
        if later < 60:
            log.end(PROJECT, "deploy", NOW + later)

        log.begin(PROJECT, "deploy", pid=None, pid_started=None, until=NOW + 600, now=NOW + later)

        (declared,) = log.list_declared(PROJECT, NOW + later + 1)
        assert declared.until == NOW + 600
        assert count_workflows(database) == (1 if later < 1 else 2)

    def test_several_may_last_at_once(self, log: WorkflowLog) -> None:
        for name in ("deploy", "import", "δ:1"):
            log.begin(PROJECT, name, pid=None, pid_started=None, until=NOW + 60, now=NOW)

        assert [declared.name for declared in log.list_declared(PROJECT, NOW)] == ["deploy", "import", "δ:1"]

    def test_the_gate_may_find_that_its_process_is_gone(self, log: WorkflowLog) -> None:
        log.begin(PROJECT, "deploy", pid=7, pid_started=NOW - 9, until=NOW + 600, now=NOW)
        key = f"declared:deploy:{NOW:.0f}"
        assert log.record(PROJECT, [running_workflow(key)], NOW + 1) == WorkflowChanges()

        assert log.record(PROJECT, [ended_workflow(key, at=NOW + 2)], NOW + 3).ended_keys == (key,)

        assert log.list_declared(PROJECT, NOW + 4) == ()

    def test_one_announced_since_the_look_is_not_taken_for_gone(self, log: WorkflowLog) -> None:
        log.begin(PROJECT, "deploy", pid=None, pid_started=None, until=NOW + 60, now=NOW)

        assert log.record(PROJECT, [], NOW + 1) == WorkflowChanges()

        assert len(log.list_declared(PROJECT, NOW + 2)) == 1

    def test_one_ended_since_the_look_is_not_taken_for_running(self, log: WorkflowLog) -> None:
        log.begin(PROJECT, "deploy", pid=None, pid_started=None, until=NOW + 60, now=NOW)
        log.end(PROJECT, "deploy", NOW + 1)

        assert log.record(PROJECT, [running_workflow(f"declared:deploy:{NOW:.0f}")], NOW + 2) == WorkflowChanges()

        assert log.list_declared(PROJECT, NOW + 3) == ()
