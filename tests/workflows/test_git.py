from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from echod.workflows import GateState, MarkerKind
from echod.workflows.markers.activity import OPERATIONS

if TYPE_CHECKING:
    from tests.workflows.scene import Scene

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(directory: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(
        ["git", *identity, *arguments],
        cwd=directory,
        check=True,
        capture_output=True,
        env={
            "PATH": "/usr/bin:/bin:/usr/local/bin",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null",
        },
    )


def tracked_repository(scene: Scene) -> Path:
    """Create a repository with the store in it and return the git directory."""
    scene.memory(age=24)
    git(scene.project, "init", "-q")
    git(scene.project, "add", "-f", ".rune")
    git(scene.project, "commit", "-q", "-m", "memory")
    return scene.project / ".git"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_git_operation_in_progress_holds_the_gate(scene: Scene, operation: str) -> None:
    mark = tracked_repository(scene) / operation
    mark.mkdir() if operation.startswith("rebase") else mark.touch()

    verdict = scene.verdict()

    assert verdict.state is GateState.ACTIVE
    assert [(r.kind, r.marker) for r in verdict.reasons] == [(MarkerKind.GIT, f".git/{operation}")]


def test_a_repository_at_rest_holds_nothing(scene: Scene) -> None:
    tracked_repository(scene)

    assert scene.verdict().state is GateState.IDLE


def test_a_forgotten_merge_stops_holding_after_half_a_day(scene: Scene) -> None:
    mark = tracked_repository(scene) / "MERGE_HEAD"
    mark.touch()
    scene.set_age(mark, 13)

    verdict = scene.verdict()

    assert verdict.state is GateState.IDLE
    assert [r.kind for r in verdict.reasons] == [MarkerKind.GIT]


def test_a_rebase_that_takes_steps_is_alive(scene: Scene) -> None:
    mark = tracked_repository(scene) / "rebase-merge"
    mark.mkdir()
    (mark / "msgnum").write_text("7")
    scene.set_age(mark, 13)

    assert scene.verdict().state is GateState.ACTIVE


def test_an_operation_in_a_repository_that_does_not_track_the_store_holds_nothing(scene: Scene) -> None:
    scene.memory(age=24)
    scene.file("main.py")
    git(scene.project, "init", "-q")
    git(scene.project, "add", "main.py")
    (scene.project / ".git" / "MERGE_HEAD").touch()

    assert scene.verdict().state is GateState.IDLE


def test_a_repository_without_any_index_tracks_nothing(scene: Scene) -> None:
    scene.memory(age=24)
    git(scene.project, "init", "-q")
    (scene.project / ".git" / "index.lock").touch()

    assert scene.verdict().state is GateState.IDLE


def test_a_project_in_a_folder_of_a_repository_is_found_by_its_path(scene: Scene) -> None:
    scene.memory(age=24)
    git(scene.project.parent, "init", "-q")
    git(scene.project.parent, "add", "-f", "project")
    (scene.project.parent / ".git" / "MERGE_HEAD").touch()

    assert scene.verdict().state is GateState.ACTIVE


def test_an_index_in_which_a_path_cannot_be_searched_counts_as_tracking(scene: Scene) -> None:
    mark = tracked_repository(scene)
    git(scene.project, "update-index", "--index-version", "4")
    (mark / "MERGE_HEAD").touch()

    assert scene.verdict().state is GateState.ACTIVE


def test_a_split_index_counts_as_tracking(scene: Scene) -> None:
    mark = tracked_repository(scene)
    git(scene.project, "update-index", "--split-index")
    (mark / "MERGE_HEAD").touch()

    assert scene.verdict().state is GateState.ACTIVE


def test_the_index_is_searched_across_the_seams_of_its_pieces(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echod.workflows.markers.activity._CHUNK", 3)
    (tracked_repository(scene) / "MERGE_HEAD").touch()

    assert scene.verdict().state is GateState.ACTIVE


def test_a_linked_worktree_has_its_operations_elsewhere(scene: Scene) -> None:
    tracked_repository(scene)
    linked = scene.project.parent / "linked"
    git(scene.project, "worktree", "add", "-q", str(linked))
    merging = scene.project / ".git/worktrees/linked/MERGE_HEAD"
    merging.touch()

    of_main = scene.verdict()
    scene.project, scene.stores = linked, (linked / ".rune/echoes",)
    of_linked = scene.verdict()

    assert of_main.state is not GateState.ACTIVE
    assert of_linked.state is GateState.ACTIVE
    assert of_linked.reasons[0].marker == str(merging)


def test_a_git_file_that_points_nowhere_is_no_repository(scene: Scene) -> None:
    scene.memory(age=24)
    scene.file(".git", "gitdir: ../nowhere\n")

    assert scene.verdict().state is GateState.IDLE
