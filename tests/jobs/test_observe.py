"""Every reported task becomes one entry, wherever the process that writes it is killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from echod.inbox.inbox import Elsewhere, Inbox
from echod.jobs.base import Blocked, Done
from echod.state.hook_events import ObservedLog
from echod.store.errors import Busy
from tests.hooks.events import rune_team, teammate
from tests.jobs.conftest import Place
from tests.support import in_child

LEARNED = "### [2026-01-01] Pattern: Old\n- **layer**: inscribed\n- Learned.\n"


def run(place: Place, role: str = "orchestrator") -> dict[str, int]:
    """Do what waits for a role; what became of tasks so far."""
    with place.office() as office:
        office.observe(role)
        return office.outcomes()


def test_a_task_is_recorded_at_the_end_of_what_is_there(place: Place) -> None:
    memory = place.memory("reviewer")
    memory.write_text(f"# Reviewer Memory\n\n{LEARNED}")
    place.tell(rune_team(place.project))

    with place.office() as office:
        assert office.observe("reviewer") == Done("1 observation recorded", changed=True)

    assert memory.read_text().startswith(f"# Reviewer Memory\n\n{LEARNED}\n## Observations \u2014 Task: Review")
    assert place.waiting() == 0


def test_a_thousand_tasks_of_a_role_are_one_commit(place: Place) -> None:
    for number in range(1000):
        place.tell(teammate(place.project, task=str(number), subject=f"Task number {number}"))

    with place.office() as office:
        assert office.observe("orchestrator") == Done("1000 observations recorded", changed=True)
        assert len(office.engine.history([place.store])) == 1

    assert place.subjects() == [f"Task number {number}" for number in range(1000)]
    assert place.waiting() == 0


def test_the_same_task_is_recorded_once_in_a_batch_and_ever(place: Place) -> None:
    for _ in range(3):
        place.tell(teammate(place.project))
    assert run(place) == {"recorded": 1, Elsewhere.KNOWN: 2}

    place.tell(teammate(place.project))
    assert run(place) == {"recorded": 1, Elsewhere.KNOWN: 3}
    assert len(place.subjects()) == 1
    assert place.waiting() == 0


def test_tasks_that_differ_only_in_their_number_are_two(place: Place) -> None:
    place.tell(teammate(place.project, task="1"))
    place.tell(teammate(place.project, task="2"))

    assert run(place) == {"recorded": 2}
    assert len(place.subjects()) == 2


def test_task_numbers_start_again_in_each_session(place: Place) -> None:
    place.tell(teammate(place.project))
    place.tell(teammate(place.project, session_id="another"))

    assert run(place) == {"recorded": 2}


@pytest.mark.parametrize("step", ["begin", "commit", "record", "signal", "forget"])
def test_killed_at_any_step_a_task_is_recorded_exactly_once(
    place: Place, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    (place.project / "tmp/.rune-signals").mkdir(parents=True)
    tasks = [rune_team(place.project, str(n), f"Task {n % 3}") for n in range(4)]
    for task in tasks:
        place.tell(task)

    def die(*_: object, **__: object) -> None:
        os._exit(137)

    def die_before_the_commit(*_: object) -> str | None:
        os._exit(137)

    with monkeypatch.context() as patched:
        match step:
            case "begin":
                patched.setattr(ObservedLog, "begin", die)
            case "record":
                patched.setattr(ObservedLog, "record", die)
            case "signal":
                patched.setattr("echod.jobs.observe.leave_signal", die)
            case "forget":
                patched.setattr(Inbox, "forget", die)

        def work() -> None:
            with place.office() as office:
                if step == "commit":
                    office.observe("reviewer", gate=die_before_the_commit)
                office.observe("reviewer")

        assert in_child(work) == 137

    assert place.waiting() == 4
    for _ in range(2):
        outcomes = run(place, "reviewer")

    assert sorted(place.subjects("reviewer")) == ["Task 0", "Task 0", "Task 1", "Task 2"]
    assert outcomes == {"recorded": 4}
    assert place.waiting() == 0
    assert len(list((place.project / "tmp/.rune-signals").glob(".obs-*"))) == 4


def test_an_event_that_comes_between_a_kill_and_the_next_run_is_recorded_too(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.tell(teammate(place.project))

    def die(*_: object) -> None:
        os._exit(137)

    with monkeypatch.context() as patched:
        patched.setattr(ObservedLog, "record", die)
        assert in_child(lambda: run(place)) == 137
    place.tell(teammate(place.project, task="2", subject="Another"))

    assert run(place) == {"recorded": 2}
    assert place.subjects() == ["Review the session store", "Another"]


def test_an_observation_that_a_person_deletes_stays_deleted(place: Place) -> None:
    place.tell(teammate(place.project))
    run(place)
    place.memory("orchestrator").write_text("# Orchestrator Memory\n")

    place.tell(teammate(place.project))
    run(place)

    assert place.subjects() == []


# Other writers


def test_a_task_that_another_program_has_marked_is_not_recorded_again(place: Place) -> None:
    signals = place.project / "tmp/.rune-signals"
    signals.mkdir(parents=True)
    (signals / ".obs-rune-review-7be1_1").touch()
    place.tell(rune_team(place.project))
    place.tell(rune_team(place.project, task="2"))

    assert run(place, "reviewer") == {"recorded": 1, Elsewhere.SIGNALLED: 1}
    assert (signals / ".obs-rune-review-7be1_2").exists()


def test_marks_are_left_only_where_a_plugin_keeps_them(place: Place) -> None:
    place.tell(rune_team(place.project))

    run(place, "reviewer")

    assert not (place.project / "tmp").exists()


def test_marks_do_not_follow_a_link_out_of_the_project(place: Place, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (place.project / "tmp").mkdir()
    (place.project / "tmp/.rune-signals").symlink_to(elsewhere)
    place.tell(rune_team(place.project))

    assert run(place, "reviewer") == {"recorded": 1}
    assert list(elsewhere.iterdir()) == []


# When it cannot be


def test_in_report_mode_nothing_is_written_and_nothing_is_lost(place: Place) -> None:
    place.tell(teammate(place.project))
    with place.office() as office:
        outcome = office.observe("orchestrator", writes=False)

    assert outcome == Done("report only: would do: 1 observation recorded", changed=False)
    assert place.subjects() == []
    assert place.waiting() == 1


def test_a_closed_gate_keeps_the_events(place: Place) -> None:
    place.tell(teammate(place.project))
    with place.office() as office, pytest.raises(Busy):
        office.observe("orchestrator", gate=lambda: "a workflow began")

    assert place.waiting() == 1
    assert run(place) == {"recorded": 1}
    assert len(place.subjects()) == 1


def test_a_file_that_cannot_be_read_is_left_alone_and_the_events_wait(place: Place) -> None:
    place.memory("orchestrator").write_bytes(b"\xff\xfe broken")
    place.tell(teammate(place.project))
    with place.office() as office:
        assert isinstance(office.observe("orchestrator"), Blocked)

    assert place.memory("orchestrator").read_bytes() == b"\xff\xfe broken"
    assert place.waiting() == 1


def test_a_role_that_lost_its_memory_after_the_event_was_sorted_gets_none(place: Place) -> None:
    place.tell(teammate(place.project))
    with place.office() as office:
        office.sort()
        place.memory("orchestrator").unlink()
        assert office.observe("orchestrator") == Done(f"nothing recorded: {Elsewhere.NO_ROLE}", changed=False)
        assert office.outcomes() == {Elsewhere.NO_ROLE: 1}

    assert not place.memory("orchestrator").exists()


def test_where_another_process_was_faster_there_is_nothing_to_do(place: Place) -> None:
    place.tell(teammate(place.project))
    with place.office() as slow, place.office() as fast:
        slow.sort()
        fast.observe("orchestrator")
        assert slow.observe("orchestrator") == Done("nothing to do: the events are gone", changed=False)

    assert len(place.subjects()) == 1
