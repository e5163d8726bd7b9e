"""Every reported task becomes one entry, wherever the process that writes it is killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from echod.inbox.inbox import DropReason, Inbox
from echod.jobs.base import JobBlocked, JobDone
from echod.state.session_log import HookEventLog
from echod.store.errors import BusyError
from tests.hooks.events import rune_team_event, teammate_event
from tests.jobs.conftest import Workspace
from tests.support import run_in_child

LEARNED = "### [2026-01-01] Pattern: Old\n- **layer**: inscribed\n- Learned.\n"


def run_observe(workspace: Workspace, role: str = "orchestrator") -> dict[str, int]:
    """Run the observe job of a role, and return the outcomes of tasks so far."""
    with workspace.open_services() as services:
        services.observe(role)
        return services.outcomes()


def test_a_task_is_recorded_at_the_end_of_what_is_there(workspace: Workspace) -> None:
    memory = workspace.memory("reviewer")
    memory.write_text(f"# Reviewer Memory\n\n{LEARNED}")
    workspace.spool_event(rune_team_event(workspace.project))

    with workspace.open_services() as services:
        assert services.observe("reviewer") == JobDone("1 observation recorded", changed=True)

    assert memory.read_text().startswith(f"# Reviewer Memory\n\n{LEARNED}\n## Observations \u2014 Task: Review")
    assert workspace.count_waiting() == 0


def test_a_thousand_tasks_of_a_role_are_one_commit(workspace: Workspace) -> None:
    for number in range(1000):
        workspace.spool_event(teammate_event(workspace.project, task=str(number), subject=f"Task number {number}"))

    with workspace.open_services() as services:
        assert services.observe("orchestrator") == JobDone("1000 observations recorded", changed=True)
        assert len(services.engine.history([workspace.store])) == 1

    assert workspace.subjects() == [f"Task number {number}" for number in range(1000)]
    assert workspace.count_waiting() == 0


def test_the_same_task_is_recorded_once_in_a_batch_and_ever(workspace: Workspace) -> None:
    for _ in range(3):
        workspace.spool_event(teammate_event(workspace.project))
    assert run_observe(workspace) == {"recorded": 1, DropReason.ALREADY_RECORDED: 2}

    workspace.spool_event(teammate_event(workspace.project))
    assert run_observe(workspace) == {"recorded": 1, DropReason.ALREADY_RECORDED: 3}
    assert len(workspace.subjects()) == 1
    assert workspace.count_waiting() == 0


def test_tasks_that_differ_only_in_their_number_are_one_counted_entry(workspace: Workspace) -> None:
    workspace.spool_event(teammate_event(workspace.project, task="1"))
    workspace.spool_event(teammate_event(workspace.project, task="2"))

    assert run_observe(workspace) == {"recorded": 2}
    assert len(workspace.subjects()) == 1
    assert "(2 times in 1 workflow" in workspace.memory("orchestrator").read_text()


def test_subjects_that_differ_in_a_number_are_two_entries(workspace: Workspace) -> None:
    for number in (3, 4):
        workspace.spool_event(teammate_event(workspace.project, str(number), f"Fix SEC-00{number}"))

    run_observe(workspace)

    assert workspace.subjects() == ["Fix SEC-003", "Fix SEC-004"]


def test_task_numbers_start_again_in_each_session(workspace: Workspace) -> None:
    workspace.spool_event(teammate_event(workspace.project))
    workspace.spool_event(teammate_event(workspace.project, session_id="another"))

    assert run_observe(workspace) == {"recorded": 2}


@pytest.mark.parametrize("step", ["begin", "commit", "record", "signal", "forget"])
def test_killed_at_any_step_a_task_is_recorded_exactly_once(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    (workspace.project / "tmp/.rune-signals").mkdir(parents=True)
    tasks = [rune_team_event(workspace.project, str(n), f"Task {n % 3}") for n in range(4)]
    for task in tasks:
        workspace.spool_event(task)

    def die(*_: object, **__: object) -> None:
        os._exit(137)

    def die_before_the_commit(*_: object) -> str | None:
        os._exit(137)

    with monkeypatch.context() as patched:
        match step:
            case "begin":
                patched.setattr(HookEventLog, "mark_started", die)
            case "record":
                patched.setattr(HookEventLog, "mark_recorded", die)
            case "signal":
                patched.setattr("echod.jobs.observe.write_task_signal", die)
            case "forget":
                patched.setattr(Inbox, "remove_recorded", die)

        def work() -> None:
            with workspace.open_services() as services:
                if step == "commit":
                    services.observe("reviewer", gate=die_before_the_commit)
                services.observe("reviewer")

        assert run_in_child(work) == 137

    assert workspace.count_waiting() == 4
    for _ in range(2):
        outcomes = run_observe(workspace, "reviewer")

    assert workspace.subjects("reviewer") == ["Task 0", "Task 1", "Task 2"]
    assert workspace.memory("reviewer").read_text().count(" (2 times in 1 workflow, ") == 1
    assert outcomes == {"recorded": 4}
    assert workspace.count_waiting() == 0
    assert len(list((workspace.project / "tmp/.rune-signals").glob(".obs-*"))) == 4


def test_an_event_that_comes_between_a_kill_and_the_next_run_is_recorded_too(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.spool_event(teammate_event(workspace.project))

    def die(*_: object) -> None:
        os._exit(137)

    with monkeypatch.context() as patched:
        patched.setattr(HookEventLog, "mark_recorded", die)
        assert run_in_child(lambda: run_observe(workspace)) == 137
    workspace.spool_event(teammate_event(workspace.project, task="2", subject="Another"))

    assert run_observe(workspace) == {"recorded": 2}
    assert workspace.subjects() == ["Review the session store", "Another"]


def test_an_observation_that_the_user_deletes_stays_deleted(workspace: Workspace) -> None:
    workspace.spool_event(teammate_event(workspace.project))
    run_observe(workspace)
    workspace.memory("orchestrator").write_text("# Orchestrator Memory\n")

    workspace.spool_event(teammate_event(workspace.project))
    run_observe(workspace)

    assert workspace.subjects() == []


# Other writers


def test_a_task_that_another_program_has_marked_is_not_recorded_again(workspace: Workspace) -> None:
    signals = workspace.project / "tmp/.rune-signals"
    signals.mkdir(parents=True)
    (signals / ".obs-rune-review-7be1_1").touch()
    workspace.spool_event(rune_team_event(workspace.project))
    workspace.spool_event(rune_team_event(workspace.project, task="2"))

    assert run_observe(workspace, "reviewer") == {"recorded": 1, DropReason.RECORDED_ELSEWHERE: 1}
    assert (signals / ".obs-rune-review-7be1_2").exists()


def test_marks_are_left_only_where_a_plugin_keeps_them(workspace: Workspace) -> None:
    workspace.spool_event(rune_team_event(workspace.project))

    run_observe(workspace, "reviewer")

    assert not (workspace.project / "tmp").exists()


def test_marks_do_not_follow_a_link_out_of_the_project(workspace: Workspace, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (workspace.project / "tmp").mkdir()
    (workspace.project / "tmp/.rune-signals").symlink_to(elsewhere)
    workspace.spool_event(rune_team_event(workspace.project))

    assert run_observe(workspace, "reviewer") == {"recorded": 1}
    assert list(elsewhere.iterdir()) == []


# When it cannot be


def test_in_report_mode_nothing_is_written_and_nothing_is_lost(workspace: Workspace) -> None:
    workspace.spool_event(teammate_event(workspace.project))
    with workspace.open_services() as services:
        outcome = services.observe("orchestrator", allow_writes=False)

    assert outcome == JobDone("report only: would do: 1 observation recorded", changed=False)
    assert workspace.subjects() == []
    assert workspace.count_waiting() == 1


def test_a_closed_gate_keeps_the_events(workspace: Workspace) -> None:
    workspace.spool_event(teammate_event(workspace.project))
    with workspace.open_services() as services, pytest.raises(BusyError):
        services.observe("orchestrator", gate=lambda: "a workflow began")

    assert workspace.count_waiting() == 1
    assert run_observe(workspace) == {"recorded": 1}
    assert len(workspace.subjects()) == 1


def test_a_file_that_cannot_be_read_is_left_alone_and_the_events_wait(workspace: Workspace) -> None:
    workspace.memory("orchestrator").write_bytes(b"\xff\xfe broken")
    workspace.spool_event(teammate_event(workspace.project))
    with workspace.open_services() as services:
        assert isinstance(services.observe("orchestrator"), JobBlocked)

    assert workspace.memory("orchestrator").read_bytes() == b"\xff\xfe broken"
    assert workspace.count_waiting() == 1


def test_a_role_that_lost_its_memory_after_the_event_was_sorted_gets_none(workspace: Workspace) -> None:
    workspace.spool_event(teammate_event(workspace.project))
    with workspace.open_services() as services:
        services.refresh()
        workspace.memory("orchestrator").unlink()
        assert services.observe("orchestrator") == JobDone(f"nothing recorded: {DropReason.NO_ROLE}", changed=False)
        assert services.outcomes() == {DropReason.NO_ROLE: 1}

    assert not workspace.memory("orchestrator").exists()


def test_where_another_process_was_faster_there_is_nothing_to_do(workspace: Workspace) -> None:
    workspace.spool_event(teammate_event(workspace.project))
    with workspace.open_services() as slow, workspace.open_services() as fast:
        slow.refresh()
        fast.observe("orchestrator")
        assert slow.observe("orchestrator") == JobDone("nothing to do: the events were removed", changed=False)

    assert len(workspace.subjects()) == 1


def test_a_task_that_says_the_same_raises_a_count_and_its_text_is_in_the_archive(workspace: Workspace) -> None:
    text = "src/lock.py leaks its handle. Always close it in finally."
    for number in range(4):
        event = rune_team_event(workspace.project, str(number), "Fix the lock")
        workspace.spool_event(event | {"task_description": text, "team_name": f"rune-review-{number}"})
        run_observe(workspace, "reviewer")

    memory = workspace.memory("reviewer").read_text()
    assert memory.count("Task: Fix the lock") == 1
    assert "(4 times in 4 workflows, " in memory
    [archive] = (workspace.memory("reviewer").parent / "archive").glob("pruned-*.md")
    assert archive.read_text().count("## Observations \u2014 Task: Fix the lock") == 3
    with workspace.open_services() as services:
        assert services.outcomes() == {"recorded": 4}


def test_tasks_of_one_batch_that_say_the_same_are_one_counted_entry(workspace: Workspace) -> None:
    text = "src/lock.py leaks its handle. Always close it in finally."
    for number in range(6):
        event = rune_team_event(workspace.project, str(number), "Fix the lock", f"rune-review-{number % 3}")
        workspace.spool_event(event | {"task_description": text})

    run_observe(workspace, "reviewer")

    memory = workspace.memory("reviewer").read_text()
    assert memory.count("Task: Fix the lock") == 1
    assert "(6 times in 3 workflows, " in memory
    [archive] = (workspace.memory("reviewer").parent / "archive").glob("pruned-*.md")
    assert archive.read_text().count("## Observations \u2014 Task: Fix the lock") == 5


def test_a_more_specific_text_is_an_entry_of_its_own(workspace: Workspace) -> None:
    for number, text in enumerate(["It was done.", "src/lock.py leaks `handle`. Always close it in finally."]):
        workspace.spool_event(
            rune_team_event(workspace.project, str(number), "Fix the lock") | {"task_description": text}
        )
        run_observe(workspace, "reviewer")

    assert "Always close it in finally." in workspace.memory("reviewer").read_text()
