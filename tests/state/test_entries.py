"""What echod knows of entries: counted once, carried along, forgotten late."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta

import pytest

from echod.memory.entry_matching import NOTHING, Likeness, Present
from echod.memory.model import Layer
from echod.memory.policy import Facts
from echod.state.database import Database
from echod.state.entries import FORGOTTEN_DAYS, EntryLog, Reference
from echod.state.workflow_log import Sighting, WorkflowLog

STORE, ROLE, PROJECT = "/home/user/src/shop/.rune/echoes", "reviewer", "/home/user/src/shop"
TODAY = date(2026, 11, 20)
NOON = datetime(2026, 11, 20, 12).astimezone().timestamp()
DAY = 86_400.0
O, I = Layer.OBSERVATIONS, Layer.INSCRIBED  # noqa: E741


@pytest.fixture
def entries(database: Database) -> EntryLog:
    return EntryLog(database)


def facts(entries: EntryLog, today: date = TODAY) -> Facts:
    return entries.facts(STORE, ROLE, PROJECT, today, 90)


def see(
    entries: EntryLog,
    layers: Mapping[str, Layer | None],
    today: date,
    told: Mapping[str, str] = NOTHING,
    **said: str,
) -> None:
    """A look at a file with these entries; `said` is what they say where that is not their id."""
    present = [Present(i, layer, Likeness(said.get(i, i), "", "", said.get(i, i))) for i, layer in layers.items()]
    entries.see(STORE, ROLE, present, today, told)


def runs(log: WorkflowLog, key: str, at: float, ended: float | None = None) -> None:
    log.record(PROJECT, [Sighting(key, "review", key, at, running=True, ended_at=None)], at)
    if ended is not None:
        log.record(PROJECT, [Sighting(key, "review", key, at, running=False, ended_at=ended)], ended)


class TestSeen:
    def test_an_entry_is_known_since_the_first_look_that_showed_it(self, entries: EntryLog) -> None:
        for later in range(3):
            see(entries, {"a": I, "b": None}, TODAY + timedelta(days=later))

        assert {i: h.first_seen for i, h in facts(entries).histories.items()} == {"a": TODAY, "b": TODAY}

    def test_an_entry_that_comes_back_is_as_old_as_it_was(self, entries: EntryLog) -> None:
        see(entries, {"a": I}, TODAY)
        see(entries, {}, TODAY + timedelta(days=1))
        see(entries, {"a": I}, TODAY + timedelta(days=2))

        assert facts(entries).histories["a"].first_seen == TODAY

    def test_other_roles_and_stores_know_nothing_of_it(self, entries: EntryLog) -> None:
        see(entries, {"a": I}, TODAY)

        assert not entries.facts(STORE, "workers", PROJECT, TODAY, 90).histories
        assert not entries.facts("/elsewhere", ROLE, PROJECT, TODAY, 90).histories

    def test_what_is_long_gone_is_forgotten_and_what_is_there_is_not(self, entries: EntryLog) -> None:
        see(entries, {"a": I, "b": I}, TODAY)
        entries.refer(STORE, [Reference("a", "session:1"), Reference("b", "session:1")], TODAY)
        see(entries, {"b": I}, TODAY)

        assert entries.tidy(TODAY + timedelta(days=FORGOTTEN_DAYS)) == 0
        assert entries.tidy(TODAY + timedelta(days=FORGOTTEN_DAYS + 1)) == 1
        assert facts(entries).histories.keys() == {"b"}


class TestAlive:
    def test_days_are_those_marked_and_those_of_workflows(self, entries: EntryLog, database: Database) -> None:
        log = WorkflowLog(database)
        runs(log, "review-1", NOON - 5 * DAY, ended=NOON - 4 * DAY)
        entries.mark_alive(PROJECT, [TODAY, TODAY - timedelta(days=30)])
        entries.mark_alive(PROJECT, [TODAY])

        assert facts(entries).alive_days == {TODAY - timedelta(days=back) for back in (0, 4, 5, 30)}


class TestReferences:
    def test_a_cause_counts_once(self, entries: EntryLog) -> None:
        assert entries.refer(STORE, [Reference("a", "session:1")], TODAY - timedelta(days=2)) == 1
        assert entries.refer(STORE, [Reference("a", "session:1"), Reference("a", "session:2")], TODAY) == 1

        history = facts(entries).histories["a"]
        assert (history.references, history.last_reference) == (2, TODAY)

    def test_relevance_counts_recent_workflows_each_once(self, entries: EntryLog, database: Database) -> None:
        log = WorkflowLog(database)
        runs(log, "old", NOON - 120 * DAY, ended=NOON - 119 * DAY)
        for number in range(4):
            runs(log, f"review-{number}", NOON - number * DAY, ended=NOON - number * DAY + 60)
        causes = [("session:1", "review-0"), ("session:2", "review-0"), ("session:3", "review-1"), ("session:4", "old")]

        entries.refer(STORE, [Reference("a", cause, workflow) for cause, workflow in causes], TODAY)

        found = facts(entries)
        assert (found.histories["a"].workflows, found.workflows_seen) == (2, 4)

    def test_the_workflow_is_the_one_that_ran_then(self, entries: EntryLog, database: Database) -> None:
        log = WorkflowLog(database)
        runs(log, "review-1", NOON, ended=NOON + 20)
        runs(log, "work-2", NOON + 30)

        moments = (NOON - 1, NOON + 10, NOON + 40, NOON + 90)
        assert [entries.workflow_at(PROJECT, at) for at in moments] == [None, "review-1", "work-2", "work-2"]

    def test_only_entries_that_are_there_are_often_referenced(self, entries: EntryLog) -> None:
        see(entries, {"a": O, "b": I, "c": O}, TODAY)
        for cause in ("session:1", "session:2", "session:3"):
            entries.refer(STORE, [Reference(entry, cause) for entry in "abc"], TODAY)
        see(entries, {"a": O, "b": I}, TODAY)

        assert entries.often_referenced(STORE, ROLE, O, 3, TODAY) == ("a",)
        assert entries.often_referenced(STORE, ROLE, O, 4, TODAY) == ()

    def test_a_pinned_entry_is_not_counted_until_its_pin_runs_out(self, entries: EntryLog) -> None:
        see(entries, {"a": O}, TODAY)
        entries.refer(STORE, [Reference("a", "session:1")], TODAY)
        entries.pin(STORE, ["a"], TODAY)

        assert entries.often_referenced(STORE, ROLE, O, 1, TODAY) == ()
        assert entries.often_referenced(STORE, ROLE, O, 1, TODAY + timedelta(days=1)) == ("a",)


class TestPins:
    def test_a_pin_stands_until_it_is_taken_back_or_runs_out(self, entries: EntryLog) -> None:
        entries.pin(STORE, ["a", "b"], TODAY)

        assert entries.unpin(STORE, "a")
        assert not entries.unpin(STORE, "a")
        assert facts(entries).pinned == {"b": TODAY}
        entries.tidy(TODAY + timedelta(days=1))
        assert not facts(entries).pinned


class TestCarried:
    """What is known of an entry goes with it where its id changes."""

    def test_references_pins_and_age_move_along_with_ids_that_are_exchanged(self, entries: EntryLog) -> None:
        see(entries, {"a": O}, TODAY - timedelta(days=9), a="one")
        see(entries, {"a": O, "b": O}, TODAY, a="one", b="two")
        causes = [("a", "session:1"), ("b", "session:1"), ("b", "session:2")]
        entries.refer(STORE, [Reference(*cause) for cause in causes], TODAY)
        entries.pin(STORE, ["a"], TODAY)

        see(entries, {"a": O, "b": O}, TODAY, a="two", b="one")

        found = facts(entries)
        assert {i: h.references for i, h in found.histories.items()} == {"a": 2, "b": 1}
        assert found.histories["b"].first_seen == TODAY - timedelta(days=9)
        assert found.pinned == {"b": TODAY}

    def test_an_entry_that_takes_the_id_of_one_that_went_brings_its_own_history(self, entries: EntryLog) -> None:
        see(entries, {"a": O, "b": O}, TODAY, a="one", b="two")
        entries.refer(STORE, [Reference("a", "session:1"), *(Reference("b", f"session:{n}") for n in "23")], TODAY)

        see(entries, {"a": O}, TODAY, a="two")

        assert facts(entries).histories["a"].references == 2

    def test_what_went_under_an_id_that_another_one_has_now_is_known_when_it_comes_back(
        self, entries: EntryLog
    ) -> None:
        see(entries, {"a": O, "b": O}, TODAY - timedelta(days=9), a="one", b="two")
        entries.refer(STORE, [Reference("a", "session:1"), *(Reference("b", f"session:{n}") for n in "23")], TODAY)
        entries.pin(STORE, ["a"], TODAY)
        before = facts(entries)

        see(entries, {"a": O}, TODAY, a="two")
        assert not facts(entries).pinned.get("a")
        see(entries, {"a": O, "b": O}, TODAY, a="one", b="two")

        assert facts(entries) == before

    def test_whoever_knows_better_is_believed(self, entries: EntryLog) -> None:
        see(entries, {"a": O, "b": O}, TODAY, a="same", b="same")
        entries.refer(STORE, [Reference("b", "session:1")], TODAY)

        see(entries, {"a": O}, TODAY, told={"b": "a"}, a="same")

        assert facts(entries).histories["a"].references == 1

    def test_what_was_written_down_for_the_new_id_before_a_look_is_added(self, entries: EntryLog) -> None:
        see(entries, {"a": O}, TODAY, a="one")
        entries.refer(STORE, [Reference("a", "session:1"), Reference("a", "session:2")], TODAY - timedelta(days=3))
        entries.refer(STORE, [Reference("b", "session:2"), Reference("b", "session:3")], TODAY)
        entries.pin(STORE, ["a"], TODAY)
        entries.pin(STORE, ["b"], TODAY + timedelta(days=5))

        see(entries, {"b": O}, TODAY, b="one")

        found = facts(entries)
        assert (found.histories["b"].references, found.histories["b"].last_reference) == (3, TODAY)
        assert found.pinned == {"b": TODAY + timedelta(days=5)}

    def test_the_facts_of_a_file_that_nobody_looked_at_yet_are_those_after_the_look(self, entries: EntryLog) -> None:
        see(entries, {"a": O, "b": O, "c": I}, TODAY, a="one", b="two")
        causes = [("a", "session:1"), ("b", "session:1"), ("c", "session:2"), ("d", "session:1")]
        entries.refer(STORE, [Reference(*cause, f"review-{cause[1]}") for cause in causes], TODAY)
        entries.pin(STORE, ["b"], TODAY)
        now = [Present("a", O, Likeness("two", "", "", "two")), Present("d", I, Likeness("c", "", "", "c"))]

        told = entries.facts(STORE, ROLE, PROJECT, TODAY, 90, now)
        entries.see(STORE, ROLE, now, TODAY)

        after = facts(entries)
        assert told.histories == {one: after.histories[one] for one in ("a", "d")}
        assert (after.pinned, after.alive_days) == (told.pinned, told.alive_days)
        assert (told.pinned, told.histories["d"].references) == ({"a": TODAY}, 2)

    def test_a_row_without_a_likeness_is_known_by_its_id(self, entries: EntryLog, database: Database) -> None:
        with database.writing() as link:
            link.execute(
                "INSERT INTO entry (store, role, id, layer, first_seen) VALUES (?, ?, 'a', 'inscribed', '2026-01-02')",
                (STORE, ROLE),
            )

        see(entries, {"a": I}, TODAY)
        see(entries, {"b": I}, TODAY, b="a")

        assert facts(entries).histories["b"].first_seen == date(2026, 1, 2)


class TestPruned:
    def test_what_was_archived_today_adds_up_and_is_forgotten_tomorrow(self, entries: EntryLog) -> None:
        for number in (2, 3):
            entries.note_pruned(STORE, ROLE, TODAY, number)

        assert facts(entries).inscribed_archived_today == 5
        assert facts(entries, TODAY + timedelta(days=1)).inscribed_archived_today == 0
        entries.note_pruned(STORE, ROLE, TODAY + timedelta(days=1), 1)
        assert facts(entries, TODAY + timedelta(days=1)).inscribed_archived_today == 1

    def test_a_first_prune_is_held_since_it_was_first_met_until_it_is_let_go(self, entries: EntryLog) -> None:
        assert [entries.hold(STORE, ROLE, NOON + later) for later in (0, 9)] == [NOON, NOON]

        entries.let_go(STORE, [ROLE])

        assert entries.hold(STORE, ROLE, NOON + 20) is None
        assert entries.hold(STORE, "workers", NOON) == NOON

    def test_a_file_that_was_pruned_is_not_held_again(self, entries: EntryLog) -> None:
        entries.note_pruned(STORE, ROLE, TODAY, 0)

        assert entries.hold(STORE, ROLE, NOON) is None


class TestMany:
    def test_of_very_many_references_the_number_is_bounded_and_the_last_day_is_not(
        self, entries: EntryLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("echod.state.entries.MOST_REFERENCES", 10)
        see(entries, {"a": I, "b": I}, TODAY)
        for number in range(40):
            entries.refer(STORE, [Reference("a", f"finding:{number}")], TODAY)
        entries.refer(STORE, [Reference("b", "finding:0")], TODAY)

        later = TODAY + timedelta(days=3)
        entries.refer(STORE, [Reference("a", "finding:1000"), Reference("a", "workflow:w", "w")], later)

        found = facts(entries, later).histories
        assert (found["a"].references, found["b"].references) == (12, 1)
        assert found["a"].last_reference == later

    @pytest.mark.parametrize("named", ["present", "ids"])
    def test_facts_are_told_of_the_entries_that_are_asked_for_alone(self, entries: EntryLog, named: str) -> None:
        see(entries, {"a": I, "b": O, "c": I}, TODAY)
        entries.refer(STORE, [Reference(one, "session:1", "w") for one in "abc"], TODAY)
        entries.pin(STORE, ["a", "c"], TODAY)
        present = [Present("b", O, Likeness("b", "", "", "b")), Present("c", I, Likeness("c", "", "", "c"))]

        if named == "ids":
            told = entries.facts(STORE, ROLE, PROJECT, TODAY, 90, ids=["b", "c"])
        else:
            told = entries.facts(STORE, ROLE, PROJECT, TODAY, 90, present)

        everything = facts(entries)
        assert told.histories == {one: everything.histories[one] for one in "bc"}
        assert told.pinned == {"c": TODAY}

    def test_nothing_is_told_of_a_file_without_entries(self, entries: EntryLog) -> None:
        see(entries, {"a": I}, TODAY)

        assert not entries.facts(STORE, ROLE, PROJECT, TODAY, 90, ()).histories

    def test_a_look_at_a_file_does_not_look_at_all_that_ever_were_in_it(
        self, entries: EntryLog, database: Database
    ) -> None:
        """The plan of the database, since the time is no test: it searches by index and scans no table."""
        asked: list[str] = []
        see(entries, {"a": I, "b": O}, TODAY)
        with database.reading() as link:
            link.set_trace_callback(asked.append)
        entries.facts(STORE, ROLE, PROJECT, TODAY, 90, [Present("a", I, Likeness("a", "", "", "a"))])
        see(entries, {"a": I, "b": O}, TODAY)
        entries.often_referenced(STORE, ROLE, O, 3, TODAY)
        with database.reading() as link:
            link.set_trace_callback(None)
            steps = [
                step["detail"]
                for query in asked
                if query.strip().startswith("SELECT")
                and (" entry " in query or " reference " in query or " pin " in query)
                for step in link.execute(f"EXPLAIN QUERY PLAN {query}")
            ]

        tables = [step for step in steps if any(f" {table} " in f"{step} " for table in ("entry", "reference", "pin"))]
        assert tables
        assert [step for step in tables if not step.startswith("SEARCH")] == []
        assert [step for step in tables if "entry" in step and step.endswith("(store=? AND role=?)")] == [
            step for step in tables if "entry_here" in step
        ]
