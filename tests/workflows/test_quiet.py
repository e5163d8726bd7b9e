from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from echod.workflows import GateLimits, GateState, MarkerKind, quiet_streak
from tests.workflows.scene import DEAD_PID, LIVE_PID, MINUTE, UNKNOWN_PID

if TYPE_CHECKING:
    from tests.workflows.scene import Scene

SECOND = 1 / 3600


def test_a_memory_file_that_someone_just_changed_makes_quiet(scene: Scene) -> None:
    scene.memory(age=10 * SECOND)

    verdict = scene.verdict()

    assert verdict.state is GateState.QUIET
    assert [(r.kind, r.marker) for r in verdict.reasons] == [(MarkerKind.CHANGED, ".rune/echoes/reviewer/MEMORY.md")]
    assert verdict.until == pytest.approx(scene.now + 20, abs=0.01)


def test_quiet_ends_when_its_seconds_are_over(scene: Scene) -> None:
    scene.memory(age=31 * SECOND)

    assert scene.verdict().state is GateState.IDLE


def test_a_knowledge_file_counts_like_a_memory_file(scene: Scene) -> None:
    scene.memory(name="knowledge.md", age=SECOND)

    assert scene.verdict().state is GateState.QUIET


def test_a_findings_file_alone_does_not_make_quiet(scene: Scene) -> None:
    scene.memory(name="forge-findings.md", age=SECOND)

    assert scene.verdict().state is GateState.IDLE


def test_echods_own_writes_do_not_make_quiet(scene: Scene) -> None:
    memory = scene.memory(age=SECOND)
    scene.own_writes[memory] = memory.stat().st_mtime_ns

    assert scene.verdict().state is GateState.IDLE


def test_a_change_after_our_own_write_makes_quiet(scene: Scene) -> None:
    memory = scene.memory(age=SECOND)
    scene.own_writes[memory] = memory.stat().st_mtime_ns - 1

    assert scene.verdict().state is GateState.QUIET


def test_a_workflow_that_just_ended_makes_quiet(scene: Scene) -> None:
    scene.state(status="completed", age=5 * SECOND, owner_pid=str(LIVE_PID))

    verdict = scene.verdict()

    assert verdict.state is GateState.QUIET
    assert verdict.reasons[0].marker == "tmp/.rune-review-abc.json"


def test_an_end_that_the_database_remembers_makes_quiet(scene: Scene) -> None:
    scene.last_ended = scene.now - 12

    verdict = scene.verdict()

    assert verdict.state is GateState.QUIET
    assert verdict.reasons[0].kind is MarkerKind.ENDED
    assert verdict.until == pytest.approx(scene.now + 18)


def test_with_zero_quiet_seconds_there_is_no_quiet(scene: Scene) -> None:
    scene.memory(age=0)
    scene.file(".rune/echoes/reviewer/.MEMORY.md.kate-swp", age=0)
    scene.last_ended = scene.now

    assert scene.verdict(GateLimits(quiet_seconds=0)).state is GateState.IDLE


def test_a_writer_without_pauses_holds_jobs_up_for_a_quarter_of_an_hour_only(scene: Scene) -> None:
    scene.memory(age=SECOND)

    almost = scene.verdict(quiet_since=scene.now - 899)
    spent = scene.verdict(quiet_since=scene.now - 900)

    assert almost.state is GateState.QUIET
    assert almost.until == pytest.approx(scene.now + 1)
    assert spent.state is GateState.IDLE
    assert [r.blocking for r in spent.reasons] == [False]


def test_the_streak_of_quiet_continues_with_its_signs_even_when_it_is_used_up(scene: Scene) -> None:
    scene.memory(age=SECOND)

    first = quiet_streak(scene.verdict(), None, scene.now)
    spent = scene.verdict(quiet_since=scene.now - 1000)

    assert first == scene.now
    assert quiet_streak(spent, scene.now - 1000, scene.now) == scene.now - 1000


@pytest.mark.parametrize("active", [True, False])
def test_the_streak_of_quiet_is_broken_by_rest_and_by_a_workflow(scene: Scene, active: bool) -> None:
    if active:
        scene.state(status="active", age=0, owner_pid=LIVE_PID)

    assert quiet_streak(scene.verdict(), scene.now - 100, scene.now) is None


def test_a_workflow_that_runs_weighs_more_than_quiet(scene: Scene) -> None:
    scene.memory(age=SECOND)
    scene.state(status="active", owner_pid=LIVE_PID)

    assert scene.verdict().state is GateState.ACTIVE


def vim_swap(pid: int, host: str) -> bytes:
    block = bytearray(4096)
    block[0:2] = b"b0"
    block[24:28] = pid.to_bytes(4, "little")
    block[68 : 68 + len(host)] = host.encode()
    return bytes(block)


HERE = os.uname().nodename


@pytest.mark.parametrize(
    ("pid", "host", "age", "state"),
    [
        pytest.param(LIVE_PID, HERE, 3, GateState.QUIET, id="alive"),
        pytest.param(LIVE_PID, HERE, 13, GateState.IDLE, id="alive but untouched for half a day"),
        pytest.param(DEAD_PID, HERE, 0.1, GateState.IDLE, id="left behind by a crash"),
        pytest.param(LIVE_PID, "elsewhere", 1, GateState.QUIET, id="of another host, young"),
        pytest.param(LIVE_PID, "elsewhere", 3, GateState.IDLE, id="of another host, old"),
        pytest.param(UNKNOWN_PID, HERE, 3, GateState.IDLE, id="nobody can tell, old"),
    ],
)
def test_a_vim_swap_file_counts_while_its_process_lives(
    scene: Scene, pid: int, host: str, age: float, state: GateState
) -> None:
    scene.memory(age=24)
    scene.file(".rune/echoes/reviewer/.MEMORY.md.swp", vim_swap(pid, host), age=age)

    assert scene.verdict().state is state


@pytest.mark.parametrize(
    ("target", "age", "state"),
    [
        pytest.param(f"me@{HERE}.{LIVE_PID}:1700000000", 3, GateState.QUIET, id="alive"),
        pytest.param(f"me@{HERE}.{DEAD_PID}", 0.1, GateState.IDLE, id="left behind by a crash"),
        pytest.param("nonsense", 1, GateState.QUIET, id="unknown form, young"),
        pytest.param("nonsense", 3, GateState.IDLE, id="unknown form, old"),
    ],
)
def test_an_emacs_lock_is_read_without_being_followed(scene: Scene, target: str, age: float, state: GateState) -> None:
    memory = scene.memory(age=24)
    lock = memory.with_name(".#MEMORY.md")
    lock.symlink_to(target)
    scene.set_age(lock, age)

    assert scene.verdict().state is state


@pytest.mark.parametrize(
    ("name", "state"),
    [
        (".MEMORY.md.kate-swp", GateState.QUIET),
        (".~lock.MEMORY.md#", GateState.QUIET),
        (".knowledge.md.swo", GateState.QUIET),
        ("MEMORY.md~", GateState.IDLE),
        ("#MEMORY.md#", GateState.IDLE),
        (".MEMORY.md.echod-7", GateState.IDLE),
        (".MEMORY.md.Xk29aQ", GateState.IDLE),
        (".forge-findings.md.swp", GateState.IDLE),
    ],
)
def test_only_locks_of_memory_and_knowledge_files_count(scene: Scene, name: str, state: GateState) -> None:
    scene.memory(age=24)
    scene.file(f".rune/echoes/reviewer/{name}", age=MINUTE)

    assert scene.verdict().state is state
