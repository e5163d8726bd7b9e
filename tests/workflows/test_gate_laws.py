"""Laws of the pure gate, for observations of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from echod.workflows import (
    GateLimits,
    GateObservations,
    GateState,
    MarkerKind,
    ProcessState,
    ProcessStatus,
    find_workflow_runs,
    gate,
)
from echod.workflows.model import EditorLock, ExternalChange, Marker, MarkerOwner, MarkerState

if TYPE_CHECKING:
    from tests.workflows.scene import Scene

NOW = 1_773_748_800.0
DAY = 86_400.0
REST = {GateState.ACTIVE: 2, GateState.QUIET: 1, GateState.IDLE: 0}
SIGNS = [kind for kind in MarkerKind if kind not in {MarkerKind.CHANGED, MarkerKind.ENDED, MarkerKind.EDITOR}]

past = st.floats(NOW - 30 * DAY, NOW)
pasts = st.none() | past
owners = st.builds(
    MarkerOwner,
    st.none() | st.integers(2, 4_194_303),
    st.builds(ProcessStatus, st.sampled_from(ProcessState), pasts),
)
markers = st.builds(
    Marker,
    kind=st.sampled_from(SIGNS),
    path=st.text(max_size=8),
    name=st.text(max_size=8),
    description=st.text(max_size=8),
    state=st.sampled_from(MarkerState),
    modified_at=past,
    last_active=past,
    owner=owners,
    started=pasts,
    ended=pasts,
    deadline=st.none() | st.floats(NOW - DAY, NOW + DAY),
    key=st.sampled_from(["", "run:a", "arc:arc-1"]),
)
changes = st.builds(ExternalChange, path=st.text(max_size=8), changed_at=past)
editors = st.builds(
    EditorLock, path=st.text(max_size=8), edited_file=st.just("MEMORY.md"), modified_at=past, owner=owners
)
observations = st.builds(
    GateObservations,
    markers=st.lists(markers, max_size=4).map(tuple),
    changes=st.lists(changes, max_size=3).map(tuple),
    editor_locks=st.lists(editors, max_size=2).map(tuple),
    last_ended=pasts,
)
delays = st.floats(0, 3 * DAY)
few = settings(max_examples=60, deadline=None)


@given(observations, delays, delays, st.none() | past)
@few
def test_time_alone_only_brings_rest(seen: GateObservations, first: float, more: float, since: float | None) -> None:
    before = gate(seen, NOW + first, GateLimits(), quiet_since=since)
    after = gate(seen, NOW + first + more, GateLimits(), quiet_since=since)

    assert REST[after.state] <= REST[before.state]


@given(observations, st.none() | past)
@few
def test_whatever_is_seen_ends(seen: GateObservations, since: float | None) -> None:
    assert gate(seen, NOW + 2 * DAY, GateLimits(), quiet_since=since).state is GateState.IDLE


@given(observations, delays, st.none() | past)
@example(GateObservations(editor_locks=(EditorLock("", "MEMORY.md", NOW - 6299, MarkerOwner(None)),)), 0.0, None)
@few
def test_until_is_the_moment_at_which_the_answer_changes(
    seen: GateObservations, delay: float, since: float | None
) -> None:
    verdict = gate(seen, NOW + delay, GateLimits(), quiet_since=since)
    if verdict.state is GateState.IDLE:
        assert verdict.until is None
        return

    assert verdict.until is not None
    assert verdict.until > NOW + delay
    just_before = max(NOW + delay, verdict.until - 0.001)
    began = NOW + delay if since is None else since  # a first quiet verdict begins the run of them
    assert gate(seen, just_before, GateLimits(), quiet_since=began).state is verdict.state
    assert gate(seen, verdict.until, GateLimits(), quiet_since=began).state is not verdict.state


@given(observations, delays)
@few
def test_idle_has_no_reason_that_holds_and_the_others_have_one(seen: GateObservations, delay: float) -> None:
    verdict = gate(seen, NOW + delay, GateLimits())

    assert any(reason.blocking for reason in verdict.reasons) == (verdict.state is not GateState.IDLE)


@given(observations, markers, delays)
@few
def test_one_more_marker_never_opens_the_gate(seen: GateObservations, marker: Marker, delay: float) -> None:
    more = seen._replace(markers=(*seen.markers, marker))

    assert REST[gate(more, NOW + delay, GateLimits()).state] >= REST[gate(seen, NOW + delay, GateLimits()).state]


@given(observations, delays)
@few
def test_a_dead_owner_never_blocks_longer_than_a_live_one(seen: GateObservations, delay: float) -> None:
    def with_life(life: ProcessState) -> GateState:
        owned = tuple(m._replace(owner=MarkerOwner(7, ProcessStatus(life, None))) for m in seen.markers)
        return gate(seen._replace(markers=owned), NOW + delay, GateLimits()).state

    assert (
        REST[with_life(ProcessState.DEAD)]
        <= REST[with_life(ProcessState.UNKNOWN)]
        <= REST[with_life(ProcessState.ALIVE)]
    )


wild_times = st.none() | st.floats()
wild_markers = st.builds(
    Marker,
    kind=st.sampled_from(MarkerKind),
    path=st.text(max_size=8),
    name=st.text(max_size=8),
    description=st.text(max_size=8),
    state=st.sampled_from(MarkerState),
    modified_at=wild_times,
    last_active=wild_times,
    owner=st.builds(
        MarkerOwner, st.none() | st.integers(), st.builds(ProcessStatus, st.sampled_from(ProcessState), wild_times)
    ),
    started=wild_times,
    ended=wild_times,
    deadline=wild_times,
    key=st.text(max_size=3),
)


@given(
    st.builds(
        GateObservations,
        markers=st.lists(wild_markers, max_size=4).map(tuple),
        changes=st.lists(st.builds(ExternalChange, st.text(max_size=3), st.floats()), max_size=2).map(tuple),
        editor_locks=st.lists(
            st.builds(EditorLock, st.text(max_size=3), st.just("MEMORY.md"), wild_times), max_size=2
        ).map(tuple),
        last_ended=wild_times,
    ),
    st.floats(allow_nan=False, allow_infinity=False),
    wild_times,
)
@few
def test_the_gate_never_raises(seen: GateObservations, now: float, since: float | None) -> None:
    gate(seen, now, GateLimits(), quiet_since=since)
    find_workflow_runs(seen, now)


names = st.sampled_from(
    [
        "tmp/notes.json",
        "tmp/.rune-learn-watch",
        "tmp/.rune-arc-batch-next-plan.txt",
        "tmp/.rune-compact-checkpoint.json",
        "tmp/.rune-stop-cleanup-1.log",
        "tmp/arc-result-current.json",
        "tmp/.rune-signals/.echo-dirty",
        "tmp/.rune-echo-lock-reviewer/x",
        ".rune/talisman.yml",
        ".rune/arc-integrity-log.jsonl",
        ".rune/arc/archived/arc-1/checkpoint.json",
        ".claude/worktrees/w/tmp/.rune-work-1.json",
        ".rune/echoes/reviewer/archive/MEMORY-2026-01-01.md",
        "src/.rune-work-1.json",
    ]
)


@given(name=names, content=st.binary(max_size=30) | st.just(b'{"status": "active", "owner_pid": "4242"}'))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_file_that_is_no_marker_never_closes_the_gate(scene: Scene, name: str, content: bytes) -> None:
    scene.memory(age=24)

    scene.file(name, content, age=0)

    assert scene.verdict().state is GateState.IDLE


@given(content=st.binary(max_size=60))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@pytest.mark.parametrize(
    "name",
    [
        "tmp/.rune-work-1.json",
        ".rune/arc-phase-loop.local.md",
        ".rune/arc/arc-1/checkpoint.json",
        "tmp/.rune-locks/strive/meta.json",
        "tmp/.rune-signals/rune-work-1/.expected",
        ".rune/echoes/reviewer/.MEMORY.md.swp",
        ".git",
    ],
)
def test_any_bytes_in_a_marker_give_a_verdict_that_ends(scene: Scene, name: str, content: bytes) -> None:
    scene.memory(age=24)

    scene.file(name, content, age=0)

    assert scene.verdict(later=24).state is GateState.IDLE
