"""The recorded data of entries: counted once, moved with their ids, deleted late."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta

import pytest

from echod.memory.entry_matching import NO_ID_CHANGES, EntrySignature, PresentEntry
from echod.memory.model import Layer
from echod.memory.policy import Facts
from echod.state.database import Database
from echod.state.entries import REMOVED_ENTRY_DAYS, EntryStore, Reference
from echod.state.workflow_log import WorkflowLog, WorkflowSnapshot

STORE, ROLE, PROJECT = "/home/user/src/shop/.rune/echoes", "reviewer", "/home/user/src/shop"
TODAY = date(2026, 11, 20)
NOON = datetime(2026, 11, 20, 12).astimezone().timestamp()
DAY = 86_400.0
O, I = Layer.OBSERVATIONS, Layer.INSCRIBED  # noqa: E741


@pytest.fixture
def entries(database: Database) -> EntryStore:
    return EntryStore(database)


def get_facts(entries: EntryStore, today: date = TODAY) -> Facts:
    return entries.get_facts(STORE, ROLE, PROJECT, today, 90)


def record_present(
    entries: EntryStore,
    layers: Mapping[str, Layer | None],
    today: date,
    known_renames: Mapping[str, str] = NO_ID_CHANGES,
    **texts: str,
) -> None:
    """Record a file with these entries. `texts` are their bodies where these differ from their ids."""
    present = [
        PresentEntry(i, layer, EntrySignature(texts.get(i, i), "", "", texts.get(i, i))) for i, layer in layers.items()
    ]
    entries.record_present(STORE, ROLE, present, today, known_renames)


def record_workflow(log: WorkflowLog, key: str, at: float, ended: float | None = None) -> None:
    log.record(PROJECT, [WorkflowSnapshot(key, "review", key, at, running=True, ended_at=None)], at)
    if ended is not None:
        log.record(PROJECT, [WorkflowSnapshot(key, "review", key, at, running=False, ended_at=ended)], ended)


class TestSeen:
    def test_an_entry_is_known_since_the_first_look_that_showed_it(self, entries: EntryStore) -> None:
        for later in range(3):
            record_present(entries, {"a": I, "b": None}, TODAY + timedelta(days=later))

        assert {i: h.first_seen for i, h in get_facts(entries).histories.items()} == {"a": TODAY, "b": TODAY}

    def test_an_entry_that_comes_back_is_as_old_as_it_was(self, entries: EntryStore) -> None:
        record_present(entries, {"a": I}, TODAY)
        record_present(entries, {}, TODAY + timedelta(days=1))
        record_present(entries, {"a": I}, TODAY + timedelta(days=2))

        assert get_facts(entries).histories["a"].first_seen == TODAY

    def test_other_roles_and_stores_know_nothing_of_it(self, entries: EntryStore) -> None:
        record_present(entries, {"a": I}, TODAY)

        assert not entries.get_facts(STORE, "workers", PROJECT, TODAY, 90).histories
        assert not entries.get_facts("/elsewhere", ROLE, PROJECT, TODAY, 90).histories

    def test_what_is_long_gone_is_forgotten_and_what_is_there_is_not(self, entries: EntryStore) -> None:
        record_present(entries, {"a": I, "b": I}, TODAY)
        entries.add_references(STORE, [Reference("a", "session:1"), Reference("b", "session:1")], TODAY)
        record_present(entries, {"b": I}, TODAY)

        assert entries.delete_stale(TODAY + timedelta(days=REMOVED_ENTRY_DAYS)) == 0
        assert entries.delete_stale(TODAY + timedelta(days=REMOVED_ENTRY_DAYS + 1)) == 1
        assert get_facts(entries).histories.keys() == {"b"}


class TestAlive:
    def test_days_are_those_marked_and_those_of_workflows(self, entries: EntryStore, database: Database) -> None:
        log = WorkflowLog(database)
        record_workflow(log, "review-1", NOON - 5 * DAY, ended=NOON - 4 * DAY)
        entries.record_activity(PROJECT, [TODAY, TODAY - timedelta(days=30)])
        entries.record_activity(PROJECT, [TODAY])

        assert get_facts(entries).alive_days == {TODAY - timedelta(days=back) for back in (0, 4, 5, 30)}


class TestReferences:
    def test_a_cause_counts_once(self, entries: EntryStore) -> None:
        assert entries.add_references(STORE, [Reference("a", "session:1")], TODAY - timedelta(days=2)) == 1
        assert entries.add_references(STORE, [Reference("a", "session:1"), Reference("a", "session:2")], TODAY) == 1

        history = get_facts(entries).histories["a"]
        assert (history.references, history.last_reference) == (2, TODAY)

    def test_relevance_counts_recent_workflows_each_once(self, entries: EntryStore, database: Database) -> None:
        log = WorkflowLog(database)
        record_workflow(log, "old", NOON - 120 * DAY, ended=NOON - 119 * DAY)
        for number in range(4):
            record_workflow(log, f"review-{number}", NOON - number * DAY, ended=NOON - number * DAY + 60)
        causes = [("session:1", "review-0"), ("session:2", "review-0"), ("session:3", "review-1"), ("session:4", "old")]

        entries.add_references(STORE, [Reference("a", cause, workflow) for cause, workflow in causes], TODAY)

        found = get_facts(entries)
        assert (found.histories["a"].workflows, found.workflows_seen) == (2, 4)

    def test_sessions_count_for_relevance_where_no_workflow_was_seen(self, entries: EntryStore) -> None:
        entries.add_references(STORE, [Reference("a", "session:1"), Reference("b", "session:2")], TODAY)
        entries.add_references(STORE, [Reference("a", "session:old")], TODAY - timedelta(days=120))
        entries.add_references(STORE, [Reference("a", "access:1")], TODAY)

        found = get_facts(entries)
        assert (found.histories["a"].workflows, found.workflows_seen) == (1, 2)

    def test_only_what_ran_since_the_entry_exists_counts(self, entries: EntryStore, database: Database) -> None:
        log = WorkflowLog(database)
        for number in range(4):
            record_workflow(log, f"review-{number}", NOON - 10 * number * DAY, ended=NOON - 10 * number * DAY + 60)
        record_present(entries, {"a": I}, TODAY - timedelta(days=15))

        found = get_facts(entries)
        assert (found.histories["a"].workflows_seen, found.workflows_seen) == (2, 4)

    def test_the_workflow_is_the_one_that_ran_then(self, entries: EntryStore, database: Database) -> None:
        log = WorkflowLog(database)
        record_workflow(log, "review-1", NOON, ended=NOON + 20)
        record_workflow(log, "work-2", NOON + 30)

        moments = (NOON - 1, NOON + 10, NOON + 40, NOON + 90)
        assert [entries.workflow_at(PROJECT, at) for at in moments] == [None, "review-1", "work-2", "work-2"]

    def test_only_entries_that_are_there_are_often_referenced(self, entries: EntryStore) -> None:
        record_present(entries, {"a": O, "b": I, "c": O}, TODAY)
        for cause in ("session:1", "session:2", "session:3"):
            entries.add_references(STORE, [Reference(entry, cause) for entry in "abc"], TODAY)
        record_present(entries, {"a": O, "b": I}, TODAY)

        assert entries.list_often_referenced(STORE, ROLE, O, 3, TODAY) == ("a",)
        assert entries.list_often_referenced(STORE, ROLE, O, 4, TODAY) == ()

    def test_a_pinned_entry_is_not_counted_until_its_pin_runs_out(self, entries: EntryStore) -> None:
        record_present(entries, {"a": O}, TODAY)
        entries.add_references(STORE, [Reference("a", "session:1")], TODAY)
        entries.pin(STORE, ["a"], TODAY)

        assert entries.list_often_referenced(STORE, ROLE, O, 1, TODAY) == ()
        assert entries.list_often_referenced(STORE, ROLE, O, 1, TODAY + timedelta(days=1)) == ("a",)


class TestPins:
    def test_a_pin_lasts_until_it_is_removed_or_expires(self, entries: EntryStore) -> None:
        entries.pin(STORE, ["a", "b"], TODAY)

        assert entries.unpin(STORE, "a")
        assert not entries.unpin(STORE, "a")
        assert get_facts(entries).pinned == {"b": TODAY}
        entries.delete_stale(TODAY + timedelta(days=1))
        assert not get_facts(entries).pinned


class TestCarried:
    """The data of an entry moves with it when its id changes."""

    def test_references_pins_and_age_move_along_with_ids_that_are_exchanged(self, entries: EntryStore) -> None:
        record_present(entries, {"a": O}, TODAY - timedelta(days=9), a="one")
        record_present(entries, {"a": O, "b": O}, TODAY, a="one", b="two")
        causes = [("a", "session:1"), ("b", "session:1"), ("b", "session:2")]
        entries.add_references(STORE, [Reference(*cause) for cause in causes], TODAY)
        entries.pin(STORE, ["a"], TODAY)

        record_present(entries, {"a": O, "b": O}, TODAY, a="two", b="one")

        found = get_facts(entries)
        assert {i: h.references for i, h in found.histories.items()} == {"a": 2, "b": 1}
        assert found.histories["b"].first_seen == TODAY - timedelta(days=9)
        assert found.pinned == {"b": TODAY}

    def test_an_entry_that_takes_the_id_of_one_that_went_brings_its_own_history(self, entries: EntryStore) -> None:
        record_present(entries, {"a": O, "b": O}, TODAY, a="one", b="two")
        entries.add_references(
            STORE, [Reference("a", "session:1"), *(Reference("b", f"session:{n}") for n in "23")], TODAY
        )

        record_present(entries, {"a": O}, TODAY, a="two")

        assert get_facts(entries).histories["a"].references == 2

    def test_what_went_under_an_id_that_another_one_has_now_is_known_when_it_comes_back(
        self, entries: EntryStore
    ) -> None:
        record_present(entries, {"a": O, "b": O}, TODAY - timedelta(days=9), a="one", b="two")
        entries.add_references(
            STORE, [Reference("a", "session:1"), *(Reference("b", f"session:{n}") for n in "23")], TODAY
        )
        entries.pin(STORE, ["a"], TODAY)
        before = get_facts(entries)

        record_present(entries, {"a": O}, TODAY, a="two")
        assert not get_facts(entries).pinned.get("a")
        record_present(entries, {"a": O, "b": O}, TODAY, a="one", b="two")

        assert get_facts(entries) == before

    def test_known_renames_take_precedence(self, entries: EntryStore) -> None:
        record_present(entries, {"a": O, "b": O}, TODAY, a="same", b="same")
        entries.add_references(STORE, [Reference("b", "session:1")], TODAY)

        record_present(entries, {"a": O}, TODAY, known_renames={"b": "a"}, a="same")

        assert get_facts(entries).histories["a"].references == 1

    def test_what_was_written_down_for_the_new_id_before_a_look_is_added(self, entries: EntryStore) -> None:
        record_present(entries, {"a": O}, TODAY, a="one")
        entries.add_references(
            STORE, [Reference("a", "session:1"), Reference("a", "session:2")], TODAY - timedelta(days=3)
        )
        entries.add_references(STORE, [Reference("b", "session:2"), Reference("b", "session:3")], TODAY)
        entries.pin(STORE, ["a"], TODAY)
        entries.pin(STORE, ["b"], TODAY + timedelta(days=5))

        record_present(entries, {"b": O}, TODAY, b="one")

        found = get_facts(entries)
        assert (found.histories["b"].references, found.histories["b"].last_reference) == (3, TODAY)
        assert found.pinned == {"b": TODAY + timedelta(days=5)}

    def test_the_facts_of_a_file_before_it_is_recorded_are_those_afterwards(self, entries: EntryStore) -> None:
        record_present(entries, {"a": O, "b": O, "c": I}, TODAY, a="one", b="two")
        causes = [("a", "session:1"), ("b", "session:1"), ("c", "session:2"), ("d", "session:1")]
        entries.add_references(STORE, [Reference(*cause, f"review-{cause[1]}") for cause in causes], TODAY)
        entries.pin(STORE, ["b"], TODAY)
        now = [
            PresentEntry("a", O, EntrySignature("two", "", "", "two")),
            PresentEntry("d", I, EntrySignature("c", "", "", "c")),
        ]

        facts = entries.get_facts(STORE, ROLE, PROJECT, TODAY, 90, now)
        entries.record_present(STORE, ROLE, now, TODAY)

        after = get_facts(entries)
        assert facts.histories == {one: after.histories[one] for one in ("a", "d")}
        assert (after.pinned, after.alive_days) == (facts.pinned, facts.alive_days)
        assert (facts.pinned, facts.histories["d"].references) == ({"a": TODAY}, 2)

    def test_an_earlier_text_is_recognised_for_as_long_as_a_removed_entry(self, entries: EntryStore) -> None:
        record_present(entries, {"a": I, "b": I}, TODAY, a="whole", b="other")
        entries.add_references(STORE, [Reference("a", "session:1")], TODAY)
        record_present(entries, {"c": I, "b": I}, TODAY, {"a": "c"}, c="short", b="other")
        stale = [PresentEntry("a", I, EntrySignature("whole", "", "", "whole"))]

        for days, renames in ((REMOVED_ENTRY_DAYS, {"c": "a"}), (REMOVED_ENTRY_DAYS + 1, {})):
            entries.delete_stale(TODAY + timedelta(days=days))
            assert entries.find_renames(STORE, ROLE, stale) == renames


class TestPruned:
    def test_what_was_archived_today_adds_up_and_is_forgotten_tomorrow(self, entries: EntryStore) -> None:
        for number in (2, 3):
            entries.record_prune(STORE, ROLE, TODAY, number)

        assert get_facts(entries).learnings_archived_today == 5
        assert get_facts(entries, TODAY + timedelta(days=1)).learnings_archived_today == 0
        entries.record_prune(STORE, ROLE, TODAY + timedelta(days=1), 1)
        assert get_facts(entries, TODAY + timedelta(days=1)).learnings_archived_today == 1

    def test_a_first_prune_is_held_since_it_was_first_met_until_it_is_let_go(self, entries: EntryStore) -> None:
        assert [entries.hold_first_prune(STORE, ROLE, NOON + later) for later in (0, 9)] == [NOON, NOON]

        entries.release_first_prune(STORE, [ROLE])

        assert entries.hold_first_prune(STORE, ROLE, NOON + 20) is None
        assert entries.hold_first_prune(STORE, "workers", NOON) == NOON

    def test_a_file_that_was_pruned_is_not_held_again(self, entries: EntryStore) -> None:
        entries.record_prune(STORE, ROLE, TODAY, 0)

        assert entries.hold_first_prune(STORE, ROLE, NOON) is None


class TestMany:
    def test_of_very_many_references_the_number_is_bounded_and_the_last_day_is_not(
        self, entries: EntryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("echod.state.entries.MAX_REFERENCES", 10)
        record_present(entries, {"a": I, "b": I}, TODAY)
        for number in range(40):
            entries.add_references(STORE, [Reference("a", f"finding:{number}")], TODAY)
        entries.add_references(STORE, [Reference("b", "finding:0")], TODAY)

        later = TODAY + timedelta(days=3)
        entries.add_references(STORE, [Reference("a", "finding:1000"), Reference("a", "workflow:w", "w")], later)

        found = get_facts(entries, later).histories
        assert (found["a"].references, found["b"].references) == (12, 1)
        assert found["a"].last_reference == later

    @pytest.mark.parametrize("named", ["present", "ids"])
    def test_facts_are_returned_of_the_requested_entries_alone(self, entries: EntryStore, named: str) -> None:
        record_present(entries, {"a": I, "b": O, "c": I}, TODAY)
        entries.add_references(STORE, [Reference(one, "session:1", "w") for one in "abc"], TODAY)
        entries.pin(STORE, ["a", "c"], TODAY)
        present = [
            PresentEntry("b", O, EntrySignature("b", "", "", "b")),
            PresentEntry("c", I, EntrySignature("c", "", "", "c")),
        ]

        if named == "ids":
            facts = entries.get_facts(STORE, ROLE, PROJECT, TODAY, 90, ids=["b", "c"])
        else:
            facts = entries.get_facts(STORE, ROLE, PROJECT, TODAY, 90, present)

        everything = get_facts(entries)
        assert facts.histories == {one: everything.histories[one] for one in "bc"}
        assert facts.pinned == {"c": TODAY}

    def test_a_file_without_entries_has_no_facts(self, entries: EntryStore) -> None:
        record_present(entries, {"a": I}, TODAY)

        assert not entries.get_facts(STORE, ROLE, PROJECT, TODAY, 90, ()).histories

    def test_a_look_at_a_file_does_not_look_at_all_that_ever_were_in_it(
        self, entries: EntryStore, database: Database
    ) -> None:
        """The plan of the database, since the time is no test: it searches by index and scans no table."""
        asked: list[str] = []
        record_present(entries, {"a": I, "b": O}, TODAY)
        with database.read_transaction() as link:
            link.set_trace_callback(asked.append)
        entries.get_facts(STORE, ROLE, PROJECT, TODAY, 90, [PresentEntry("a", I, EntrySignature("a", "", "", "a"))])
        record_present(entries, {"a": I, "b": O}, TODAY)
        record_present(entries, {"a": I, "b": O}, TODAY, b="edited")
        record_present(entries, {"a": I, "c": O}, TODAY, c="b")
        entries.list_often_referenced(STORE, ROLE, O, 3, TODAY)
        with database.read_transaction() as link:
            link.set_trace_callback(None)
            steps = [
                step["detail"]
                for query in asked
                if query.strip().startswith("SELECT")
                and any(f" {table} " in query for table in ("entry", "earlier_signature", "reference", "pin"))
                for step in link.execute(f"EXPLAIN QUERY PLAN {query}")
            ]

        names = ("entry", "earlier_signature", "reference", "pin")
        tables = [step for step in steps if any(f" {table} " in f"{step} " for table in names)]
        assert tables
        assert [step for step in tables if not step.startswith("SEARCH")] == []
        assert [step for step in tables if "entry" in step and step.endswith("(store=? AND role=?)")] == [
            step for step in tables if "entry_present" in step
        ]
