"""What the user decided survives the loss of the database, and nothing else does."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echod.memory.entry_matching import EntrySignature, PresentEntry
from echod.memory.model import Layer
from echod.state.database import Database
from echod.state.decisions import DecisionsNotSavedError, QuestionKey, ReviewAnswer, decisions_directory
from echod.state.entries import EntryStore, Reference
from echod.state.repair import delete_project_rows, open_checked
from echod.state.workflow_log import WorkflowLog

STORE, OTHER, PROJECT = "/p/.rune/echoes", "/q/.rune/echoes", "/p"
TODAY, LATER = date(2026, 11, 20), date(2026, 12, 20)
NOW = 1_800_000_000.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state/echod.db"


def delete(path: Path) -> None:
    for file in path.parent.glob("echod.db*"):
        file.unlink()


def damage(path: Path) -> None:
    path.write_bytes(b"no database" * 1000)


@pytest.mark.parametrize("lose", [delete, damage])
def test_every_kind_of_decision_survives_a_lost_database(path: Path, lose: Callable[[Path], None]) -> None:
    with open_checked(path, lambda: NOW).database as database:
        entries, workflows = EntryStore(database), WorkflowLog(database)
        entries.pin(STORE, ["pinned", "unpinned"], LATER)
        entries.unpin(STORE, "unpinned")
        entries.answers.record(STORE, ["item"], ReviewAnswer.REJECTED, NOW)
        entries.answers.record(OTHER, ["other"], ReviewAnswer.DISMISSED, NOW)
        entries.question_subjects.record(STORE, [QuestionKey("finding", "entry")])
        entries.hold_first_prune(STORE, "held", NOW)
        entries.release_first_prune(STORE, ["released"])
        entries.record_prune(STORE, "pruned", TODAY, 2)
        entries.add_references(STORE, [Reference("pinned", "session:a")], TODAY)
        for name in ("running", "ended"):
            workflows.begin(PROJECT, name, pid=None, pid_started=None, until=NOW + 60, now=NOW)
        workflows.end(PROJECT, "ended", NOW)

    lose(path)

    with open_checked(path, lambda: NOW).database as database:
        entries, workflows = EntryStore(database), WorkflowLog(database)
        assert entries.pinned_ids(STORE, TODAY) == {"pinned"}
        assert entries.answers.answered_items(STORE) == {"item"}
        assert entries.answers.is_rejected(STORE, "item")
        assert entries.answers.answered_items(OTHER) == {"other"}
        assert entries.question_subjects.current_ids(STORE) == {QuestionKey("finding", "entry"): "entry"}
        assert entries.held_first_prunes(STORE) == {"held": NOW}
        assert entries.release_first_prune(STORE, ["held", "released", "pruned"]) == ("held",)
        assert [workflow.name for workflow in workflows.list_declared(PROJECT, NOW)] == ["running"]
        assert entries.get_facts(STORE, "pruned", PROJECT, TODAY, 90).learnings_archived_today == 2
        assert entries.get_facts(STORE, "pruned", PROJECT, TODAY, 90).histories == {}


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["pin", "unpin", "hold", "release", "withdraw", "answer"]), st.sampled_from("abc")),
        max_size=12,
    )
)
def test_a_rebuilt_database_has_the_decisions_of_the_lost_one(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("state") / "echod.db"

    def decisions(entries: EntryStore) -> object:
        held = entries.held_first_prunes(STORE)
        return entries.pinned_ids(STORE, TODAY), dict(held), entries.answers.answered_items(STORE)

    with Database.open(path) as database:
        entries = EntryStore(database)
        for number, (step, name) in enumerate(steps):
            match step:
                case "pin":
                    entries.pin(STORE, [name], LATER)
                case "unpin":
                    entries.unpin(STORE, name)
                case "hold":
                    entries.hold_first_prune(STORE, name, NOW + number)
                case "release":
                    entries.release_first_prune(STORE, [name])
                case "withdraw":
                    entries.withdraw_release(STORE, [name])
                case _:
                    entries.answers.record(STORE, [name], ReviewAnswer.ACCEPTED, NOW)
        before = decisions(entries)
    delete(path)

    with Database.open(path) as database:
        assert decisions(EntryStore(database)) == before


def test_a_pin_follows_a_changed_id_into_the_file(path: Path) -> None:
    def present(identity: str) -> list[PresentEntry]:
        return [PresentEntry(identity, Layer.INSCRIBED, EntrySignature(identity, "", "", "the same body"))]

    with Database.open(path) as database:
        entries = EntryStore(database)
        entries.record_present(STORE, "reviewer", present("old"), TODAY)
        entries.pin(STORE, ["old"], LATER)
        entries.record_present(STORE, "reviewer", present("new"), TODAY)
    delete(path)

    with Database.open(path) as database:
        assert EntryStore(database).pinned_ids(STORE, TODAY) == {"new"}


def test_a_decision_that_cannot_be_saved_is_not_acknowledged(path: Path) -> None:
    with Database.open(path) as database:
        entries = EntryStore(database)
        decisions_directory(path).write_text("in the way")

        with pytest.raises(DecisionsNotSavedError, match="Nothing was changed"):
            entries.pin(STORE, ["entry"], LATER)

        assert entries.pinned_ids(STORE, TODAY) == frozenset()


def test_an_unreadable_file_is_kept_and_does_not_stop_the_others(path: Path) -> None:
    with Database.open(path) as database:
        EntryStore(database).pin(STORE, ["entry"], LATER)
    (decisions_directory(path) / "0.json").write_text("{")
    (decisions_directory(path) / "1.json").write_text(json.dumps({"rows": {"pin": [["too short"]]}}))
    delete(path)

    with Database.open(path) as database:
        assert EntryStore(database).pinned_ids(STORE, TODAY) == {"entry"}
    names = {file.name for file in decisions_directory(path).iterdir()}
    assert names >= {"0.unreadable", "1.unreadable"}


def test_the_decisions_about_a_purged_project_are_deleted(path: Path) -> None:
    with Database.open(path) as database:
        EntryStore(database).pin(STORE, ["entry"], LATER)
        delete_project_rows(database, PROJECT, [STORE])
    delete(path)

    with Database.open(path) as database:
        assert EntryStore(database).pinned_ids(STORE, TODAY) == frozenset()


def test_reading_a_store_writes_no_file(path: Path) -> None:
    with Database.open(path) as database:
        entries = EntryStore(database)
        entries.add_references(STORE, [Reference("entry", "session:a")], TODAY)
        entries.delete_stale(TODAY)

    assert not decisions_directory(path).exists()
