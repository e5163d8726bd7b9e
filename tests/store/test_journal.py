"""The journal survives what happens to files: torn lines, damaged records, lost contents, a lost directory."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echod.store.commit.steps import Step
from echod.store.errors import StoreFault
from echod.store.journal import files
from echod.store.journal.blobs import ImageMissing, Images
from echod.store.journal.files import append_line
from echod.store.journal.journal import KnownState, RoleJournal
from echod.store.journal.ledger import Ledger
from echod.store.journal.notices import Review, note
from echod.store.journal.records import (
    Absorption,
    AppendRecord,
    ConsumeRecord,
    Record,
    RecordState,
    RecordUnreadable,
    WriteRecord,
    decode,
)
from echod.store.layout import Role
from tests.store.conftest import HEADER, Place, consolidation, die_at, entry
from tests.support import in_child

TEXT = st.text(max_size=8)
RECORDS = st.builds(
    Record,
    seq=st.integers(1, 10**6),
    job=st.none() | st.integers(0),
    kind=TEXT,
    role=TEXT,
    summary=TEXT,
    at=st.floats(0, 1e10),
    state=st.sampled_from(RecordState),
    writes=st.tuples(st.builds(WriteRecord, TEXT, st.none() | TEXT, TEXT, TEXT, st.integers(0), TEXT)),
    appends=st.tuples(st.builds(AppendRecord, TEXT, TEXT, st.integers(0))),
    consumes=st.tuples(st.builds(ConsumeRecord, TEXT, TEXT, TEXT, TEXT, TEXT, TEXT, st.tuples(TEXT))),
    absorbs=st.tuples(st.builds(Absorption, st.integers(0), TEXT, TEXT)),
    reapplied=st.tuples(TEXT),
    undoes=st.tuples(st.integers(0)),
)


@given(RECORDS)
def test_a_record_reads_as_it_was_written(record: Record) -> None:
    assert decode(record.encode()) == record


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"version": 1}', b'{"version": 2}', b"\xff"])
def test_a_damaged_or_newer_record_is_told_apart(data: bytes) -> None:
    with pytest.raises(RecordUnreadable):
        decode(data)


def interrupted(place: Place) -> None:
    """A commit that was killed after its intent."""
    place.findings("agent", entry("Third"))

    def work() -> None:
        with place.engine(die_at(Step.INTENDED)).open_role(place.role) as session:
            session.commit(1, consolidation(session.read()))

    assert in_child(work) == 137


def test_a_damaged_record_holds_up_its_role_alone_and_deletes_nothing(place: Place) -> None:
    interrupted(place)
    (record,) = place.journal.rglob("records/*.json")
    record.write_bytes(b"{")
    other = Role(place.store, "planner")
    other.path.mkdir()
    hidden = place.hidden()

    recovery = place.engine().recover([place.store])

    assert [parked.role for parked in recovery.parked] == [f"{place.store.key}/reviewer"]
    assert place.hidden() == hidden
    with place.engine().open_role(other):
        pass
    with pytest.raises(StoreFault, match="damaged"), place.engine().open_role(place.role):
        pass


def test_a_lost_journal_loses_no_memory(place: Place) -> None:
    place.findings("agent", entry("Third"))
    with place.engine().open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))
    left = place.hidden()
    shutil.rmtree(place.journal)

    place.findings("agent", entry("Fourth"))
    with place.engine().open_role(place.role) as session:
        session.commit(2, consolidation(session.read()))

    assert place.memory.read_bytes() == HEADER + b"".join(map(entry, ("First", "Second", "Third", "Fourth")))
    assert set(left) <= set(place.hidden())


def test_a_torn_line_costs_that_line_only(tmp_path: Path) -> None:
    journal = RoleJournal(tmp_path)
    journal.note_states([KnownState("a", 1.0, None)])
    with (tmp_path / "states").open("ab") as file:
        file.write(b'{"image": "b", "si')

    journal.note_states([KnownState("c", 3.0, "main")])

    assert [state.image for state in journal.states()] == ["a", "c"]


def test_states_are_ordered_by_time_and_neighbours_differ(tmp_path: Path) -> None:
    journal = RoleJournal(tmp_path)

    journal.note_states([KnownState("b", 2.0, None), KnownState("a", 1.0, None), KnownState("b", 3.0, "new head")])

    assert journal.states() == (KnownState("a", 1.0, None), KnownState("b", 2.0, "new head"))


def test_the_ledger_is_trimmed_from_its_old_end(tmp_path: Path) -> None:
    journal = RoleJournal(tmp_path)
    for number in range(5):
        append_line(tmp_path / "ledger", f"{number:08d} + key{number}")

    journal.trim_ledger(2)

    assert journal.known_keys() == {"key3", "key4"}


MOVES = st.lists(st.tuples(st.integers(1, 9), st.sampled_from("+-"), st.sampled_from("abcde")), max_size=40)


@given(MOVES, MOVES)
def test_a_trimmed_ledger_knows_the_same_also_when_a_commit_is_entered_once_more(
    moves: list[tuple[int, str, str]], more: list[tuple[int, str, str]]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        trimmed, whole = Path(root) / "trimmed", Path(root) / "whole"
        for seq, mark, key in moves:
            for place in (trimmed, whole):
                append_line(place / "ledger", f"{seq:08d} {mark} {key}")
        RoleJournal(trimmed).trim_ledger(5)
        for seq, mark, key in (*moves[:3], *more):
            for place in (trimmed, whole):
                append_line(place / "ledger", f"{seq:08d} {mark} {key}")

        assert RoleJournal(trimmed).known_keys() == RoleJournal(whole).known_keys()


def test_a_ledger_does_not_grow_by_what_is_found_again_and_again(tmp_path: Path) -> None:
    journal = RoleJournal(tmp_path)
    sizes = []
    for day in range(9):
        for number in range(10):
            append_line(tmp_path / "ledger", f"{day * 10 + number:08d} + key{number % 3}")
        journal.trim_ledger(20_000)
        sizes.append((tmp_path / "ledger").stat().st_size)

    assert max(sizes) == sizes[0] == sizes[-1]
    assert journal.known_keys() == {"key0", "key1", "key2"}


@pytest.mark.parametrize("torn", ["00000003", "00000003 +", "00", "00000003 + "])
def test_a_torn_line_of_the_ledger_costs_that_line_only(tmp_path: Path, torn: str) -> None:
    journal = RoleJournal(tmp_path)
    (tmp_path / "ledger").write_text(f"00000001 + one\n{torn}")
    append_line(tmp_path / "ledger", "00000004 + four")

    assert journal.known_keys() == {"one", "four"}


def taking(seq: int, *keys: str, released: tuple[str, ...] = ()) -> Record:
    """A commit that consumed a findings file with these findings."""
    consumed = ConsumeRecord(f"reviewer/a{seq}-findings.md", "pre", "pre", "archive", f".claim{seq}", "pre", keys)
    return Record(
        seq, 1, "consolidate", "reviewer", "", float(seq), RecordState.APPLIED, consumes=(consumed,), released=released
    )


@given(st.lists(st.tuples(st.sets(st.sampled_from("abcd")), st.sets(st.sampled_from("abcd"))), max_size=8), st.data())
def test_what_is_known_is_the_same_whether_it_was_asked_before_or_not(
    moves: list[tuple[set[str], set[str]]], data: st.DataObject
) -> None:
    """Commits are entered as they come; closing, forgetting and trimming change nothing about that."""
    with tempfile.TemporaryDirectory() as root:
        journal = RoleJournal(Path(root))
        for seq, (consumed, released) in enumerate(moves, start=1):
            journal.save(taking(seq, *sorted(consumed), released=tuple(sorted(released))))
            match data.draw(st.sampled_from(["keep", "close", "forget"])):
                case "close":
                    oldest = journal.open_records()[0]
                    journal.enter_ledger(oldest)
                    journal.close(replace(oldest, state=RecordState.CLOSED))
                case "forget":
                    journal.forget(journal.open_records()[-1])
            assert journal.known_keys() == RoleJournal(Path(root)).known_keys()


def test_what_was_known_at_a_moment_does_not_change_afterwards(tmp_path: Path) -> None:
    journal = RoleJournal(tmp_path)
    journal.save(taking(1, "a"))
    before = journal.known_keys()

    journal.save(taking(2, "b", released=("a",)))

    assert journal.known_keys() == {"b"}
    assert before == {"a"}


@pytest.mark.parametrize("who_listed_it", ["nobody", "this thread", "another thread, late"])
def test_findings_of_a_commit_that_came_to_nothing_are_not_known_by_the_next_one(
    tmp_path: Path, who_listed_it: str
) -> None:
    """Its number is given to the next commit."""
    journal = RoleJournal(tmp_path)
    aborted, done = taking(1, "aborted"), replace(taking(1, "done"), at=1.5)
    journal.save(aborted)
    if who_listed_it == "this thread":
        assert journal.known_keys() == {"aborted"}
    journal.forget(aborted)
    view = journal.known_keys()
    if who_listed_it == "another thread, late":
        assert journal._ledger.keys((aborted,)) == {"aborted"}
    journal.save(done)

    assert journal.known_keys() == {"done"}
    assert view == set()


def test_threads_that_know_of_different_commits_do_not_mix_them_up(tmp_path: Path) -> None:
    """The thread of the status asks with what it listed a moment ago, while the worker commits."""
    ledger = Ledger(tmp_path / "ledger")
    records = [taking(seq, f"key{seq}") for seq in range(1, 9)]
    wrong: list[tuple[int, set[str]]] = []

    def ask(number: int) -> None:
        for turn in range(300):
            listed = records[: 1 + (number + turn) % len(records)]
            found = set(ledger.keys(listed))
            if found != {f"key{record.seq}" for record in listed}:
                wrong.append((len(listed), found))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(ask, range(4)))
    finally:
        sys.setswitchinterval(before)

    assert wrong == []


def as_time_goes_by(journal: RoleJournal, record: Record, data: st.DataObject) -> None:
    """The commit may be closed, and older ones may be forgotten."""
    if data.draw(st.booleans()):
        journal.close(replace(record, state=RecordState.CLOSED))
    for closed in journal.closed_records()[:-1]:
        if data.draw(st.booleans()):
            journal.remove_closed(closed)


@given(st.data())
def test_what_was_undone_is_the_same_however_much_of_it_is_forgotten(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as root:
        journal = RoleJournal(Path(root))
        undoes: dict[int, int] = {}

        def undone(seq: int) -> bool:
            return any(target == seq and not undone(by) for by, target in undoes.items())

        for seq in range(1, data.draw(st.integers(2, 9))):
            known = [record.seq for record in (*journal.open_records(), *journal.closed_records())]
            target = data.draw(st.sampled_from([None, *(other for other in known if not undone(other))]))
            if target is not None:
                undoes[seq] = target
            record = replace(taking(seq), job=100 + seq, undoes=() if target is None else (target,))
            journal.save(record)
            as_time_goes_by(journal, record, data)

            expected = {100 + one for one in range(1, seq + 1) if undone(one)}
            assert journal.undoings.jobs() == RoleJournal(Path(root)).undoings.jobs() == expected


@given(st.data())
def test_what_was_given_back_is_the_same_whether_undos_are_listed_or_looked_for(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as root:
        journal = RoleJournal(Path(root))
        for seq in range(1, data.draw(st.integers(2, 9))):
            if data.draw(st.integers(0, 3)) == 0:
                (Path(root) / "undos").unlink(missing_ok=True)  # as an earlier version left it
            known = [record.seq for record in (*journal.open_records(), *journal.closed_records())]
            target = data.draw(st.sampled_from([None, *known]))
            given_back = WriteRecord(f"reviewer/a{seq}-findings.md", None, f"digest{seq}", "", 0, "")
            undoes = () if target is None else (target,)
            record = replace(taking(seq), job=100 + seq, undoes=undoes, writes=(given_back,))
            journal.save(record)
            as_time_goes_by(journal, record, data)

            listed = journal.undoings.given_back(), RoleJournal(Path(root)).undoings.given_back()
            (Path(root) / "undos").unlink(missing_ok=True)
            looked_for = RoleJournal(Path(root)).undoings.given_back()
            journal.undoings.list_all()
            assert {*listed, looked_for} == {journal.undoings.given_back()}


def test_whether_something_was_given_back_is_known_without_the_commits_that_undo_nothing(place: Place) -> None:
    place.findings("agent", entry("Third"))
    with place.engine().open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))
    place.engine().undo(1, by=2)
    expected = place.engine().notes(place.store).gave_back

    first = min(place.journal.rglob("records/*.json"))
    first.write_bytes(b"{")

    assert expected
    assert place.engine().notes(place.store).gave_back == expected


def unreadable_list(journal: Path) -> None:
    (listed,) = journal.rglob("undos")
    listed.unlink()
    listed.mkdir()


def damaged_undo(journal: Path) -> None:
    max(journal.rglob("records/*.json")).write_bytes(b"{")


@pytest.mark.parametrize("happened", [damaged_undo, unreadable_list])
def test_a_role_whose_journal_cannot_be_read_keeps_no_other_from_being_told(
    place: Place, happened: Callable[[Path], None]
) -> None:
    review = Review(1.0, "reverted", "reviewer", "An older state was put back.", ("First",))
    other = Role(place.store, "planner")
    other.path.mkdir()
    place.findings("agent", entry("Third"))
    with place.engine().open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))
    place.engine().undo(1, by=2)
    happened(place.journal)
    with place.engine().open_role(other):
        pass
    for tag in place.journal.rglob("tag"):
        note(tag.parent, replace(review, role=tag.parent.name))

    notes = place.engine().notes(place.store)

    assert {told.role for told in notes.reviews} == {"planner", "reviewer"}
    assert notes.gave_back == {}


@pytest.mark.parametrize("below", ["records", "closed"])
def test_a_role_with_a_damaged_record_keeps_no_other_from_being_tidied(place: Place, below: str) -> None:
    """And nothing of its own goes: what is wanted of it cannot be known."""
    for number, role in enumerate((place.role, Role(place.store, "planner")), 1):
        role.path.mkdir(exist_ok=True)
        (role.path / "agent-findings.md").write_bytes(entry("Third"))
        with place.engine().open_role(role) as session:
            session.commit(number, consolidation(session.read()))
    (first,) = place.journal.rglob("reviewer/records/*.json")
    (first.parent.parent / below).mkdir(exist_ok=True)
    (first.parent.parent / below / first.name).write_bytes(b"{")
    images = {path for path in place.journal.rglob("images/*") if path.parents[1].name == "reviewer"}
    unwanted = next(place.journal.rglob("planner/images")) / ("0" * 64)
    unwanted.write_bytes(b"unwanted")

    assert place.engine().retain() >= len(b"unwanted")

    assert not unwanted.exists()
    assert {path for path in place.journal.rglob("images/*") if path.parents[1].name == "reviewer"} == images


def test_the_list_of_undos_is_on_the_disk_before_it_replaces_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list that a power cut leaves empty would say that nothing was ever given back."""
    journal, synced = RoleJournal(tmp_path), set[int]()
    for seq, undoes in ((1, ()), (2, (1,)), (3, ()), (4, (3,))):
        record = replace(taking(seq), undoes=undoes, state=RecordState.CLOSED)
        journal.save(record)
        journal.close(record)
    first, *_ = (record for record in journal.closed_records() if record.undoes)

    def sync(fd: int) -> None:
        synced.add(os.fstat(fd).st_ino)
        os.fsync(fd)

    monkeypatch.setattr(files, "sync", sync)
    journal.remove_closed(first)

    assert (tmp_path / "undos").read_text() == "4\n"
    assert (tmp_path / "undos").stat().st_ino in synced


def test_a_half_done_commit_is_finished_though_the_undos_before_it_cannot_be_listed(place: Place) -> None:
    """A journal of an earlier version, in which a commit that is long over is damaged."""
    interrupted(place)
    (intent,) = place.journal.rglob("records/*.json")
    (place.journal / intent.relative_to(place.journal).parts[0] / "reviewer/undos").unlink()
    closed = intent.parent.parent / "closed"
    closed.mkdir(exist_ok=True)
    (closed / "00000000.json").write_bytes(b"{")

    place.engine().recover([place.store])

    assert entry("Third") in place.memory.read_bytes()
    assert decode(intent.read_bytes()).state is RecordState.APPLIED


@pytest.mark.parametrize("name", ["undos", "undone", "undoings", "reviews", "questions", "ledger", "states", "own"])
def test_what_a_disk_garbled_in_a_file_of_lines_costs_these_lines_only(place: Place, name: str) -> None:
    place.findings("agent", entry("Third"))
    with place.engine().open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))
    place.engine().undo(1, by=2)
    expected = place.engine().notes(place.store).gave_back
    (role,) = place.journal.glob("*/reviewer")
    with (role / name).open("ab") as file:
        file.write(b"\xff\xfe{\x80\n")

    place.findings("other", entry("Fourth"))
    with place.engine().open_role(place.role) as session:
        session.commit(3, consolidation(session.read()))

    assert entry("Fourth") in place.memory.read_bytes()
    assert expected
    assert set(expected[place.role]) <= place.engine().notes(place.store).gave_back[place.role]


def test_a_journal_of_an_earlier_version_has_its_undos_listed_by_the_first_recovery(place: Place) -> None:
    place.findings("agent", entry("Third"))
    with place.engine().open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))
    place.engine().undo(1, by=2)
    (listed,) = place.journal.rglob("undos")
    said, expected = listed.read_bytes(), place.engine().notes(place.store).gave_back
    listed.unlink()

    assert place.engine().notes(place.store).gave_back == expected
    place.engine().recover([place.store])

    assert listed.read_bytes() == said
    assert place.engine().notes(place.store).gave_back == expected


def test_while_a_role_is_held_its_records_are_read_once_and_are_right(tmp_path: Path) -> None:
    journal = RoleJournal(tmp_path)
    first, second, third = taking(1, "a"), taking(2, "b"), taking(3, "c")
    journal.save(first)
    with journal.alone():
        assert journal.open_records() == (first,)
        journal.save(third)
        journal.save(second)
        changed = replace(second, summary="changed")
        journal.save(changed)
        journal.forget(first)

        assert journal.open_records() == (changed, third)
        assert journal.next_seq() == 4
        journal.close(replace(third, state=RecordState.CLOSED))
        assert journal.open_records() == (changed,)
        assert [record.seq for record in journal.closed_records()] == [3]

    assert journal.open_records() == (changed,) == RoleJournal(tmp_path).open_records()


def test_the_newest_state_is_the_last_of_all(tmp_path: Path) -> None:
    journal = RoleJournal(tmp_path)
    assert journal.newest_state() is None
    write = WriteRecord("reviewer/MEMORY.md", "before", "after", ".stage", 1, "before")

    journal.note_states([KnownState("old", 1.0, None), KnownState("older", 0.5, None)])
    assert journal.newest_state() == journal.states()[-1] == KnownState("old", 1.0, None)
    journal.save(replace(taking(2, "a"), writes=(write,)))
    journal.save(taking(3, "b"))
    assert journal.newest_state() == journal.states()[-1] == KnownState("after", 2.0, None)
    journal.note_states([KnownState("new", 9.0, "main")])
    assert journal.newest_state() == journal.states()[-1] == KnownState("new", 9.0, "main")


def test_an_image_is_what_it_was_or_missing(tmp_path: Path) -> None:
    images = Images(tmp_path)
    name = images.put(b"content")
    assert images.get(name) == b"content"

    (tmp_path / name).write_bytes(b"changed")

    with pytest.raises(ImageMissing, match="lost"):
        images.get(name)


def test_everything_in_the_journal_is_private(place: Place) -> None:
    place.findings("agent", entry("Third"))
    with place.engine().open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))

    assert [p for p in place.journal.rglob("*") if p.stat().st_mode & 0o077] == []


def test_recovery_waits_where_the_content_of_an_intent_is_lost(place: Place) -> None:
    interrupted(place)
    shutil.rmtree(next(place.journal.rglob("images")))

    recovery = place.engine().recover([place.store])

    assert len(recovery.parked) == 1
    assert "lost" in recovery.parked[0].reason


def test_a_role_that_a_person_removed_is_closed_in_time(place: Place) -> None:
    place.findings("agent", entry("Third"))
    with place.engine().open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))
    shutil.rmtree(place.role.path)
    place.now = 25 * 3600.0

    place.engine().settle_debts(place.store)

    assert list(place.journal.rglob("records/*.json")) == []
    assert not place.role.path.exists()


def test_a_stage_that_somebody_tidied_away_is_made_again(place: Place) -> None:
    interrupted(place)
    for path in place.role.path.glob(".*echod*"):
        path.unlink()

    place.engine().recover([place.store])

    assert place.memory.read_bytes() == HEADER + entry("First") + entry("Second") + entry("Third")


def test_a_role_is_created_once_and_never_through_a_link(place: Place) -> None:
    notes = Role(place.store, "notes")
    place.engine().create_role(notes)
    place.engine().create_role(notes)
    assert notes.path.is_dir()

    (place.store.root / "elsewhere").symlink_to(place.project)
    with pytest.raises(StoreFault):
        place.engine().create_role(Role(place.store, "elsewhere"))
