"""A reason is a sentence for the user: the marker, its content, its process, and until when it is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from echod.workflows import GateLimits, GateState, MarkerKind
from echod.workflows.gate import format_time
from tests.workflows.scene import DEAD_PID, LIVE_PID, REUSED_PID

if TYPE_CHECKING:
    from tests.workflows.scene import Scene


def test_a_reason_names_the_marker_its_words_its_process_and_its_end(scene: Scene) -> None:
    scene.state(status="active", owner_pid=str(LIVE_PID), age=1)

    (reason,) = scene.verdict().reasons

    last, end = format_time(scene.now - 3600, scene.now), format_time(scene.now + 11 * 3600, scene.now)
    assert reason.marker == "tmp/.rune-review-abc.json"
    assert reason.text == (
        f'the review workflow has the status "active"; its process {LIVE_PID} is alive; last sign of life {last}; believed until {end}'
    )
    assert (reason.name, reason.pid) == ("review-abc", LIVE_PID)
    assert reason.until == pytest.approx(scene.now + 11 * 3600, abs=0.01)


@pytest.mark.parametrize(
    ("pid", "words"),
    [
        (DEAD_PID, f"its process {DEAD_PID} is gone;"),
        (REUSED_PID, f"its process {REUSED_PID} is gone, its number belongs to a later one;"),
        ("$PPID", "its process is unknown;"),
    ],
)
def test_a_reason_contains_why_an_owner_does_not_count(scene: Scene, pid: object, words: str) -> None:
    scene.state(status="active", owner_pid=pid, age=0.1)

    assert words in scene.verdict().reasons[0].text


def test_a_start_that_the_marker_states_is_in_the_reason(scene: Scene) -> None:
    scene.state(status="active", owner_pid=LIVE_PID, started="2026-03-17T12:00:00Z")

    reason = scene.verdict().reasons[0]

    assert reason.since == 1_773_748_800.0
    assert "; started 2026-03-17 " in reason.text


def test_after_the_bound_a_warning_stays(scene: Scene) -> None:
    scene.state(status="active", owner_pid=LIVE_PID, age=13)

    verdict = scene.verdict()

    assert verdict.state is GateState.IDLE
    assert [(r.blocking, r.until) for r in verdict.reasons] == [(False, None)]
    assert "stale, so echod ignores it" in verdict.reasons[0].text


def test_blocking_reasons_come_before_warnings(scene: Scene) -> None:
    scene.state("audit-1", status="active", age=5)
    scene.state("work-1", status="active", owner_pid=LIVE_PID, age=1)

    assert [r.blocking for r in scene.verdict().reasons] == [True, False]


def test_of_several_workflows_the_last_to_be_believed_decides_when_to_ask_again(scene: Scene) -> None:
    scene.state("audit-1", status="active", age=1)
    scene.state("work-1", status="active", owner_pid=DEAD_PID, age=0.1)

    verdict = scene.verdict()

    assert len(verdict.reasons) == 2
    assert verdict.until == pytest.approx(scene.now + 3600, abs=0.01)


def test_sessions_can_be_left_out(scene: Scene) -> None:
    path = scene.claude_home / "sessions" / f"{LIVE_PID}.json"
    path.parent.mkdir()
    path.write_text(f'{{"pid": {LIVE_PID}, "cwd": "{scene.project}", "status": "busy"}}')

    assert scene.verdict().reasons[0].kind is MarkerKind.SESSION
    assert scene.verdict(GateLimits(sessions=False)).state is GateState.IDLE
