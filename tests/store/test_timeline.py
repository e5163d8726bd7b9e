"""A clock that was wrong for one job makes nothing young for a year, and nothing old at once."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from echod.store.changes import CommitResult
from echod.store.journal.records import Reading, Timeline
from echod.store.journal.retention import apply_retention
from tests.store.conftest import HEADER, Sandbox, entry, plan_consolidation

DAY = 86_400.0
INFINITY = float("inf")


def at(clocks: list[float], now: float) -> Timeline:
    return Timeline([Reading(float(order), clock) for order, clock in enumerate(clocks)], now)


def test_a_right_clock_is_believed() -> None:
    timeline = at([100.0, 200.0, 300.0], 400.0)

    assert [(timeline.earliest(order), timeline.latest(order)) for order in range(3)] == [
        (100.0, 100.0), (200.0, 200.0), (300.0, 300.0),
    ]  # fmt: skip


def test_a_reading_in_the_future_is_bounded_by_those_around_it() -> None:
    timeline = at([100.0, 400 * DAY, 300.0], 400.0)

    assert (timeline.earliest(1), timeline.latest(1)) == (100.0, 300.0)


def test_a_reading_in_the_past_is_bounded_by_the_one_before() -> None:
    timeline = at([100.0, -400 * DAY, 300.0], 400.0)

    assert (timeline.earliest(1), timeline.latest(1)) == (100.0, 100.0)
    assert timeline.latest(0) == 100.0


def test_a_reading_without_another_one_is_unknown_until_time_has_passed() -> None:
    timeline = at([400 * DAY], 100.0)

    assert (timeline.earliest(0), timeline.latest(0)) == (-INFINITY, INFINITY)
    assert timeline.estimate(0, 100.0) == 100.0


@given(st.lists(st.floats(0, 1e6), max_size=12), st.floats(0, 1e6))
def test_the_bounds_are_in_order(clocks: list[float], now: float) -> None:
    timeline = at(clocks, now)

    for order in range(len(clocks)):
        assert timeline.earliest(order) <= timeline.latest(order)
        assert timeline.earliest(order) <= timeline.earliest(order + 1)
        assert timeline.estimate(order, now) <= now


def consolidate(sandbox: Sandbox, name: str) -> None:
    sandbox.findings(name, entry(name))
    with sandbox.engine().open_role(sandbox.role) as session:
        assert isinstance(session.commit(1, plan_consolidation(session.read())), CommitResult)


def test_after_a_wrong_clock_a_deletion_counts_and_displaced_files_go(sandbox: Sandbox) -> None:
    consolidate(sandbox, "Before")
    sandbox.clock_offset = 400 * DAY
    consolidate(sandbox, "Then")
    sandbox.clock_offset = 60.0
    consolidate(sandbox, "Now")
    sandbox.clock_offset = 120.0
    sandbox.memory.write_bytes(
        sandbox.memory.read_bytes().replace(entry("Now"), b"").replace(b"Learned.", b"Known.", 1)
    )
    os.utime(sandbox.memory, (sandbox.clock(), sandbox.clock()))

    sandbox.engine().merge_late_writes(sandbox.store)

    assert b"Now" not in sandbox.memory.read_bytes()
    assert all(info.at < sandbox.clock() + 1 for info in sandbox.engine().history())
    sandbox.clock_offset = 3 * DAY
    sandbox.engine().merge_late_writes(sandbox.store)
    assert sandbox.hidden_names() == []


def test_after_a_clock_in_the_past_a_change_can_still_be_undone(sandbox: Sandbox) -> None:
    consolidate(sandbox, "Before")
    sandbox.clock_offset = -400 * DAY
    sandbox.findings("agent", entry("Then"))
    with sandbox.engine().open_role(sandbox.role) as session:
        session.commit(2, plan_consolidation(session.read()))
    sandbox.clock_offset = 60.0
    sandbox.engine(displaced_hours=0.0).merge_late_writes(sandbox.store)
    engine = sandbox.engine()
    for role in engine.journaled_roles(sandbox.store):
        apply_retention(engine._journal.role_journal(role), sandbox.limits, sandbox.clock)

    engine.undo(2, by_job=3)

    assert sandbox.memory.read_bytes() == HEADER + entry("First") + entry("Second") + entry("Before")
