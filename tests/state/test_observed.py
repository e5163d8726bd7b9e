"""A task is known from before its entry is written, and what became of events is counted once."""

from __future__ import annotations

from pathlib import Path

import pytest

from echod.errors import StateError
from echod.state.database import Database
from echod.state.hook_events import KEPT_SECONDS, Known, ObservedLog, Seen


@pytest.fixture
def log(database: Database) -> ObservedLog:
    return ObservedLog(database)


def counts(log: ObservedLog) -> dict[str, int]:
    return {heard.outcome: heard.count for heard in log.heard()}


def test_a_task_is_begun_then_recorded(log: ObservedLog) -> None:
    assert log.seen(["a"]) == {}

    log.begin({"a": "event"}, 1.0)
    assert log.seen(["a", "b"]) == {"a": Seen(Known.BEGUN, "event")}

    log.record(["a"], 2.0)
    assert log.seen(["a"]) == {"a": Seen(Known.RECORDED, "event")}


def test_a_task_is_counted_once_however_often_it_is_recorded(log: ObservedLog) -> None:
    log.begin({"a": "event", "b": "other"}, 1.0)
    for now in (2.0, 3.0):
        log.record(["a", "b"], now)

    assert counts(log) == {"recorded": 2}


def test_a_task_that_is_begun_again_keeps_the_event_it_came_from(log: ObservedLog) -> None:
    log.begin({"a": "first"}, 1.0)
    log.begin({"a": "second"}, 2.0)

    assert log.seen(["a"])["a"].event == "first"


def test_outcomes_add_up_and_know_their_last_time(log: ObservedLog) -> None:
    log.count("stop", "heard", 2, 1.0)
    log.count("stop", "heard", 3, 9.0)
    log.count("stop", "other", 1, 5.0)
    log.count("stop", "never", 0, 5.0)

    assert [(h.outcome, h.count, h.last_at) for h in log.heard()] == [("heard", 5, 9.0), ("other", 1, 5.0)]


def test_after_half_a_year_a_task_is_forgotten(log: ObservedLog) -> None:
    log.begin({"old": "event"}, 0.0)
    log.begin({"new": "event"}, 10.0)

    log.record(["new"], KEPT_SECONDS + 5.0)

    assert set(log.seen(["old", "new"])) == {"new"}


def test_what_was_known_is_known_to_the_next_process(path: Path) -> None:
    with Database.open(path) as database:
        ObservedLog(database).begin({"a": "event"}, 1.0)
    with Database.open(path) as database:
        assert ObservedLog(database).seen(["a"]) == {"a": Seen(Known.BEGUN, "event")}


def test_a_database_that_is_lost_is_an_error(path: Path, log: ObservedLog) -> None:
    path.unlink()

    with pytest.raises(StateError):
        log.begin({"a": "event"}, 1.0)
