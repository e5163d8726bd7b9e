"""Real checkpoints: idle as they are, though most of them never state an end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from echod.workflows import GateState, WorkflowRunState, find_workflow_runs
from tests.workflows.scene import LIVE_PID

if TYPE_CHECKING:
    from tests.workflows.scene import Scene

pytestmark = pytest.mark.corpus

CORPUS = Path(os.environ.get("MEMORY_CORPUS", "")) / "arc-checkpoints"
CHECKPOINTS = sorted(CORPUS.glob("*.json")) if os.environ.get("MEMORY_CORPUS") else []


def write_checkpoint(scene: Scene, source: Path, *, working: bool) -> None:
    """The checkpoint as if it had been written this minute by a session that is alive."""
    content = json.loads(source.read_bytes())
    content["owner_pid"] = str(LIVE_PID)
    if working:
        list(content["phases"].values())[-1]["status"] = "in_progress"
    scene.json(f".rune/arc/{content['id']}/checkpoint.json", age=0.1, **content)


@pytest.mark.skipif(not CHECKPOINTS, reason="MEMORY_CORPUS is not set")
@pytest.mark.parametrize("source", CHECKPOINTS, ids=lambda path: path.stem)
def test_a_real_checkpoint_is_idle_as_it_is(scene: Scene, source: Path) -> None:
    write_checkpoint(scene, source, working=False)

    verdict = scene.verdict()

    assert (verdict.state, verdict.reasons) == (GateState.IDLE, ())


@pytest.mark.skipif(not CHECKPOINTS, reason="MEMORY_CORPUS is not set")
@pytest.mark.parametrize("source", CHECKPOINTS, ids=lambda path: path.stem)
def test_a_real_checkpoint_with_a_phase_in_progress_is_active(scene: Scene, source: Path) -> None:
    write_checkpoint(scene, source, working=True)

    assert scene.verdict().state is GateState.ACTIVE


@pytest.mark.skipif(not CHECKPOINTS, reason="MEMORY_CORPUS is not set")
def test_each_pipeline_that_ran_is_seen_once(scene: Scene) -> None:
    for source in CHECKPOINTS:
        write_checkpoint(scene, source, working=False)

    seen = find_workflow_runs(scene.observe(), scene.now)

    assert len(seen) == len(CHECKPOINTS) - 2  # two were abandoned before their first phase
    assert {workflow.state for workflow in seen} == {WorkflowRunState.ENDED}
    assert {workflow.kind for workflow in seen} == {"arc"}
