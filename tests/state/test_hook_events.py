"""A task is known before its entry is written, and outcomes of events are counted once."""

from __future__ import annotations

from pathlib import Path

import pytest

from echod.errors import StateError
from echod.state.database import Database
from echod.state.session_log import TASK_RETENTION_SECONDS, HookEventLog, TaskRecord, TaskState


@pytest.fixture
def log(database: Database) -> HookEventLog:
    return HookEventLog(database)


def counts(log: HookEventLog) -> dict[str, int]:
    return {heard.outcome: heard.count for heard in log.list_counts()}


def test_a_task_is_begun_then_recorded(log: HookEventLog) -> None:
    assert log.find_tasks(["a"]) == {}

    log.mark_started({"a": "event"}, 1.0)
    assert log.find_tasks(["a", "b"]) == {"a": TaskRecord(TaskState.STARTED, "event")}

    log.mark_recorded(["a"], 2.0)
    assert log.find_tasks(["a"]) == {"a": TaskRecord(TaskState.RECORDED, "event")}


def test_a_task_is_counted_once_however_often_it_is_recorded(log: HookEventLog) -> None:
    log.mark_started({"a": "event", "b": "other"}, 1.0)
    for now in (2.0, 3.0):
        log.mark_recorded(["a", "b"], now)

    assert counts(log) == {"recorded": 2}


def test_a_task_that_is_begun_again_keeps_the_event_it_came_from(log: HookEventLog) -> None:
    log.mark_started({"a": "first"}, 1.0)
    log.mark_started({"a": "second"}, 2.0)

    assert log.find_tasks(["a"])["a"].event_name == "first"


def test_outcomes_add_up_and_know_their_last_time(log: HookEventLog) -> None:
    log.add_count("stop", "heard", 2, 1.0)
    log.add_count("stop", "heard", 3, 9.0)
    log.add_count("stop", "other", 1, 5.0)
    log.add_count("stop", "never", 0, 5.0)

    assert [(h.outcome, h.count, h.last_at) for h in log.list_counts()] == [("heard", 5, 9.0), ("other", 1, 5.0)]


def test_after_half_a_year_a_task_is_forgotten(log: HookEventLog) -> None:
    log.mark_started({"old": "event"}, 0.0)
    log.mark_started({"new": "event"}, 10.0)

    log.mark_recorded(["new"], TASK_RETENTION_SECONDS + 5.0)

    assert set(log.find_tasks(["old", "new"])) == {"new"}


def test_what_was_known_is_known_to_the_next_process(path: Path) -> None:
    with Database.open(path) as database:
        HookEventLog(database).mark_started({"a": "event"}, 1.0)
    with Database.open(path) as database:
        assert HookEventLog(database).find_tasks(["a"]) == {"a": TaskRecord(TaskState.STARTED, "event")}


def test_a_database_that_is_lost_is_an_error(path: Path, log: HookEventLog) -> None:
    path.unlink()

    with pytest.raises(StateError):
        log.mark_started({"a": "event"}, 1.0)
