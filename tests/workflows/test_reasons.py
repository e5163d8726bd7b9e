"""A reason is a sentence for a person: which marker, what it says, whose process, until when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from echod.workflows import GateLimits, GateState, Kind
from echod.workflows.gate import at
from tests.workflows.scene import DEAD, LATER, LIVE

if TYPE_CHECKING:
    from tests.workflows.scene import Scene


def test_a_reason_names_the_marker_its_words_its_process_and_its_end(scene: Scene) -> None:
    scene.state(status="active", owner_pid=str(LIVE), age=1)

    (reason,) = scene.verdict().reasons

    last, end = at(scene.now - 3600, scene.now), at(scene.now + 11 * 3600, scene.now)
    assert reason.marker == "tmp/.rune-review-abc.json"
    assert reason.text == (
        f'the review workflow says "active"; its process {LIVE} is alive; last sign of life {last}; believed until {end}'
    )
    assert (reason.name, reason.pid) == ("review-abc", LIVE)
    assert reason.until == pytest.approx(scene.now + 11 * 3600, abs=0.01)


@pytest.mark.parametrize(
    ("pid", "words"),
    [
        (DEAD, f"its process {DEAD} is gone;"),
        (LATER, f"its process {LATER} is gone, the number belongs to a later one;"),
        ("$PPID", "its process is not known;"),
    ],
)
def test_a_reason_says_why_an_owner_does_not_count(scene: Scene, pid: object, words: str) -> None:
    scene.state(status="active", owner_pid=pid, age=0.1)

    assert words in scene.verdict().reasons[0].text


def test_a_start_that_the_marker_tells_is_told(scene: Scene) -> None:
    scene.state(status="active", owner_pid=LIVE, started="2026-03-17T12:00:00Z")

    reason = scene.verdict().reasons[0]

    assert reason.since == 1_773_748_800.0
    assert "; started 2026-03-17 " in reason.text


def test_after_the_bound_a_warning_stays(scene: Scene) -> None:
    scene.state(status="active", owner_pid=LIVE, age=13)

    verdict = scene.verdict()

    assert verdict.state is GateState.IDLE
    assert [(r.holds, r.until) for r in verdict.reasons] == [(False, None)]
    assert "too long ago to believe it" in verdict.reasons[0].text


def test_reasons_that_hold_stand_before_warnings(scene: Scene) -> None:
    scene.state("audit-1", status="active", age=5)
    scene.state("work-1", status="active", owner_pid=LIVE, age=1)

    assert [r.holds for r in scene.verdict().reasons] == [True, False]


def test_of_several_workflows_the_last_to_be_believed_decides_when_to_ask_again(scene: Scene) -> None:
    scene.state("audit-1", status="active", age=1)
    scene.state("work-1", status="active", owner_pid=DEAD, age=0.1)

    verdict = scene.verdict()

    assert len(verdict.reasons) == 2
    assert verdict.until == pytest.approx(scene.now + 3600, abs=0.01)


def test_sessions_can_be_left_out(scene: Scene) -> None:
    path = scene.claude_home / "sessions" / f"{LIVE}.json"
    path.parent.mkdir()
    path.write_text(f'{{"pid": {LIVE}, "cwd": "{scene.project}", "status": "busy"}}')

    assert scene.verdict().reasons[0].kind is Kind.SESSION
    assert scene.verdict(GateLimits(sessions=False)).state is GateState.IDLE
