from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from echod.workflows import DeclaredWorkflow, WorkflowRunState, find_workflow_runs, marker_directories
from tests.workflows.scene import DEAD_PID, LIVE_PID

if TYPE_CHECKING:
    from tests.workflows.scene import Scene


def keys(scene: Scene) -> list[tuple[str, WorkflowRunState]]:
    return [(seen.key, seen.state) for seen in find_workflow_runs(scene.observe(), scene.now)]


def test_a_workflow_keeps_its_key_from_start_to_end(scene: Scene) -> None:
    scene.state(status="active", owner_pid=LIVE_PID, age=2)
    during = keys(scene)
    scene.state(status="active", owner_pid=LIVE_PID, age=1)
    rewritten = keys(scene)
    scene.state(status="completed", owner_pid=LIVE_PID, age=0.5)

    assert during == rewritten == [("run:review-abc", WorkflowRunState.RUNNING)]
    assert keys(scene) == [("run:review-abc", WorkflowRunState.ENDED)]


def test_a_workflow_run_has_its_kind_its_start_and_its_end(scene: Scene) -> None:
    scene.state("self-audit-7", status="completed", startedAt="2026-03-17T12:00:00Z", completed="2026-03-17T12:30:00Z")
    scene.now = 1_773_800_000.0

    (seen,) = find_workflow_runs(scene.observe(), scene.now)

    assert (seen.kind, seen.name) == ("self-audit", "self-audit-7")
    assert (seen.started, seen.ended_at) == (1_773_748_800.0, 1_773_750_600.0)


def test_a_missing_or_future_end_is_the_last_sign_of_life(scene: Scene) -> None:
    scene.state("work-1", status="completed", age=2)
    scene.state("work-2", status="completed", completed="2099-01-01T00:00:00Z", age=3)
    scene.state("work-3", status="active", owner_pid=DEAD_PID, age=4)

    ends = [seen.ended_at for seen in find_workflow_runs(scene.observe(), scene.now)]

    assert ends == [pytest.approx(scene.now - hours * 3600, abs=0.01) for hours in (2, 3, 4)]


def test_a_pipeline_and_its_phases_are_one_workflow(scene: Scene) -> None:
    scene.json(".rune/arc/arc-7/checkpoint.json", phases={"work": {"status": "in_progress"}}, owner_pid=LIVE_PID)
    scene.file(
        ".rune/arc-phase-loop.local.md", "---\nactive: true\ncheckpoint_path: .rune/arc/arc-7/checkpoint.json\n---\n"
    )
    scene.state("work-1", status="completed", team_name="arc-work-arc-7")

    assert keys(scene) == [("arc:arc-7", WorkflowRunState.RUNNING)]


def test_a_pipeline_between_two_phases_still_runs(scene: Scene) -> None:
    phases = {"work": {"status": "completed"}, "test": {"status": "pending"}}
    scene.json(".rune/arc/arc-7/checkpoint.json", phases=phases, owner_pid=LIVE_PID)
    scene.file(
        ".rune/arc-phase-loop.local.md", "---\nactive: true\ncheckpoint_path: .rune/arc/arc-7/checkpoint.json\n---\n"
    )

    assert keys(scene) == [("arc:arc-7", WorkflowRunState.RUNNING)]


def test_batches_are_distinguished_by_their_start(scene: Scene) -> None:
    name = ".rune/arc-batch-loop.local.md"
    scene.file(name, '---\nactive: true\nstarted_at: "2026-03-17T12:00:00Z"\n---\n')
    first = keys(scene)
    scene.file(name, '---\nactive: true\nstarted_at: "2026-03-18T12:00:00Z"\n---\n')

    assert len({*first, *keys(scene)}) == 2


def test_a_pipeline_that_never_began_is_no_workflow(scene: Scene) -> None:
    scene.json(".rune/arc/arc-7/checkpoint.json", phases={"work": {"status": "pending"}})

    assert keys(scene) == []


def test_an_announced_workflow_is_counted_and_a_second_of_its_name_is_another(scene: Scene) -> None:
    for began in (scene.now - 7200, scene.now - 60):
        scene.declared = [DeclaredWorkflow("deploy", None, None, began, began + 3600)]
        (seen,) = find_workflow_runs(scene.observe(), scene.now)
        assert seen.key == f"declared:deploy:{began:.0f}"
        assert seen.state is (WorkflowRunState.ENDED if began < scene.now - 3600 else WorkflowRunState.RUNNING)


def test_locks_teams_sessions_and_unreadable_files_are_not_counted(scene: Scene) -> None:
    scene.json("tmp/.rune-locks/strive/meta.json", pid=LIVE_PID)
    scene.file("tmp/.rune-signals/rune-work-1/.expected", "2")
    scene.file("tmp/.rune-work-1.json", "{")

    assert keys(scene) == []


def test_of_an_empty_project_its_root_is_watched(scene: Scene) -> None:
    assert marker_directories(scene.project) == (scene.project,)


def test_each_marker_directory_or_its_nearest_ancestor_is_watched(scene: Scene) -> None:
    scene.file("tmp/.rune-signals/rune-work-1/.expected", "2")
    scene.file(".rune/arc/arc-7/checkpoint.json", "{}")
    scene.file("tmp/unrelated/deep/file")
    (scene.project / ".claude").symlink_to(scene.project / ".rune")

    watched = [path.relative_to(scene.project).as_posix() for path in marker_directories(scene.project)]

    assert watched == [
        ".",
        ".rune",
        ".rune/arc",
        ".rune/arc/arc-7",
        "tmp",
        "tmp/.rune-signals",
        "tmp/.rune-signals/rune-work-1",
    ]


def test_years_of_pipelines_do_not_exhaust_the_watches(scene: Scene) -> None:
    for number in range(50):
        scene.file(f".rune/arc/arc-{number}/checkpoint.json", "{}")

    assert len(marker_directories(scene.project)) < 10
