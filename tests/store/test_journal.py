"""The journal survives torn lines, damaged records, lost contents and a lost directory."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echod.store.changes import LateMerge
from echod.store.commit.context import CommitStep
from echod.store.errors import StoreError
from echod.store.journal import files
from echod.store.journal.files import BlobMissingError, BlobStore, append_durable
from echod.store.journal.journal import KnownState, RoleJournal
from echod.store.journal.ledger import Ledger, Notice, add_notice
from echod.store.journal.records import (
    RECORD_VERSION,
    AppendRecord,
    CommitRecord,
    ConsumeRecord,
    RecordState,
    RecordUnreadableError,
    WriteRecord,
    decode_record,
)
from echod.store.layout import Role
from tests.store.conftest import HEADER, Sandbox, die_at, entry, plan_consolidation
from tests.support import run_in_child

TEXT = st.text(max_size=8)
RECORDS = st.builds(
    CommitRecord,
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
    late_merges=st.tuples(st.builds(LateMerge, st.integers(0), TEXT, TEXT)),
    restored_blocks=st.tuples(TEXT),
    undoes=st.tuples(st.integers(0)),
    clock=st.floats(0, 1e10),
    version=st.just(RECORD_VERSION),
)


@given(RECORDS)
def test_a_record_reads_as_it_was_written(record: CommitRecord) -> None:
    assert decode_record(record.encode()) == record


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"version": 1}', b'{"version": 2}', b"\xff"])
def test_a_damaged_and_a_newer_record_are_distinguished(data: bytes) -> None:
    with pytest.raises(RecordUnreadableError):
        decode_record(data)


def commit_killed_after_intent(sandbox: Sandbox) -> None:
    """Make a commit that is killed after its intent."""
    sandbox.findings("agent", entry("Third"))

    def work() -> None:
        with sandbox.engine(die_at(CommitStep.INTENT_WRITTEN)).open_role(sandbox.role) as session:
            session.commit(1, plan_consolidation(session.read()))

    assert run_in_child(work) == 137


def test_a_damaged_record_holds_up_its_role_alone_and_deletes_nothing(sandbox: Sandbox) -> None:
    commit_killed_after_intent(sandbox)
    (record,) = sandbox.journal.rglob("records/*.json")
    record.write_bytes(b"{")
    other = Role(sandbox.store, "planner")
    other.path.mkdir()
    hidden = sandbox.hidden_names()

    recovery = sandbox.engine().recover([sandbox.store])

    assert [parked.role for parked in recovery.deferred] == [f"{sandbox.store.key}/reviewer"]
    assert sandbox.hidden_names() == hidden
    with sandbox.engine().open_role(other):
        pass
    with pytest.raises(StoreError, match="damaged"), sandbox.engine().open_role(sandbox.role):
        pass


def test_a_lost_journal_loses_no_memory(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    with sandbox.engine().open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))
    left = sandbox.hidden_names()
    shutil.rmtree(sandbox.journal)

    sandbox.findings("agent", entry("Fourth"))
    with sandbox.engine().open_role(sandbox.role) as session:
        session.commit(2, plan_consolidation(session.read()))

    assert sandbox.memory.read_bytes() == HEADER + b"".join(map(entry, ("First", "Second", "Third", "Fourth")))
    assert set(left) <= set(sandbox.hidden_names())


def test_a_torn_line_costs_that_line_only(tmp_path: Path) -> None:
    journal = RoleJournal(tmp_path)
    journal.record_states([KnownState("a", 1.0, None, 1.0)])
    with (tmp_path / "states").open("ab") as file:
        file.write(b'{"digest": "b", "si')

    journal.record_states([KnownState("c", 3.0, "main", 3.0)])

    assert [state.digest for state in journal.states()] == ["a", "c"]


def test_states_are_ordered_by_time_and_neighbours_differ(tmp_path: Path) -> None:
    journal = RoleJournal(tmp_path)

    journal.record_states(
        [KnownState("b", 2.0, None, 2.0), KnownState("a", 1.0, None, 1.0), KnownState("b", 3.0, "new head", 3.0)]
    )

    assert journal.states() == (KnownState("a", 1.0, None, 1.0), KnownState("b", 2.0, "new head", 2.0))


def test_the_ledger_is_trimmed_from_its_old_end(tmp_path: Path) -> None:
    journal = RoleJournal(tmp_path)
    for number in range(5):
        append_durable(tmp_path / "ledger", f"{number:08d} + key{number}")

    journal.ledger.trim(2)

    assert journal.consumed_keys() == {"key3", "key4"}


LEDGER_CHANGES = st.lists(st.tuples(st.integers(1, 9), st.sampled_from("+-"), st.sampled_from("abcde")), max_size=40)


@pytest.mark.slow
@given(LEDGER_CHANGES, LEDGER_CHANGES)
def test_a_trimmed_ledger_knows_the_same_also_when_a_commit_is_entered_once_more(
    moves: list[tuple[int, str, str]], more: list[tuple[int, str, str]]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        trimmed, whole = Path(root) / "trimmed", Path(root) / "whole"
        for seq, mark, key in moves:
            for sandbox in (trimmed, whole):
                append_durable(sandbox / "ledger", f"{seq:08d} {mark} {key}")
        RoleJournal(trimmed).ledger.trim(5)
        for seq, mark, key in (*moves[:3], *more):
            for sandbox in (trimmed, whole):
                append_durable(sandbox / "ledger", f"{seq:08d} {mark} {key}")

        assert RoleJournal(trimmed).consumed_keys() == RoleJournal(whole).consumed_keys()


def test_a_ledger_does_not_grow_by_findings_that_are_consumed_repeatedly(tmp_path: Path) -> None:
    journal = RoleJournal(tmp_path)
    sizes = []
    for day in range(9):
        for number in range(10):
            append_durable(tmp_path / "ledger", f"{day * 10 + number:08d} + key{number % 3}")
        journal.ledger.trim(20_000)
        sizes.append((tmp_path / "ledger").stat().st_size)

    assert max(sizes) == sizes[0] == sizes[-1]
    assert journal.consumed_keys() == {"key0", "key1", "key2"}


@pytest.mark.parametrize("torn", ["00000003", "00000003 +", "00", "00000003 + "])
def test_a_torn_line_of_the_ledger_costs_that_line_only(tmp_path: Path, torn: str) -> None:
    journal = RoleJournal(tmp_path)
    (tmp_path / "ledger").write_text(f"00000001 + one\n{torn}")
    append_durable(tmp_path / "ledger", "00000004 + four")

    assert journal.consumed_keys() == {"one", "four"}


def consuming_record(seq: int, *keys: str, released: tuple[str, ...] = ()) -> CommitRecord:
    """Return the record of a commit that consumed a findings file with these findings."""
    consumed = ConsumeRecord(f"reviewer/a{seq}-findings.md", "pre", "pre", "archive", f".claim{seq}", "pre", keys)
    return CommitRecord(
        seq,
        1,
        "consolidate",
        "reviewer",
        "",
        float(seq),
        RecordState.APPLIED,
        consumes=(consumed,),
        unconsumed_keys=released,
    )


@pytest.mark.slow
@given(st.lists(st.tuples(st.sets(st.sampled_from("abcd")), st.sets(st.sampled_from("abcd"))), max_size=8), st.data())
def test_the_known_keys_do_not_depend_on_earlier_queries(
    moves: list[tuple[set[str], set[str]]], data: st.DataObject
) -> None:
    """Commits are added as they come. Closing, deleting and trimming do not change the set of keys."""
    with tempfile.TemporaryDirectory() as root:
        journal = RoleJournal(Path(root))
        for seq, (consumed, released) in enumerate(moves, start=1):
            journal.save(consuming_record(seq, *sorted(consumed), released=tuple(sorted(released))))
            match data.draw(st.sampled_from(["keep", "close", "forget"])):
                case "close":
                    oldest = journal.open_records()[0]
                    journal.ledger.add(oldest)
                    journal.close(oldest._replace(state=RecordState.CLOSED))
                case "forget":
                    journal.discard(journal.open_records()[-1])
            assert journal.consumed_keys() == RoleJournal(Path(root)).consumed_keys()


def test_a_set_of_known_keys_does_not_change_afterwards(tmp_path: Path) -> None:
    journal = RoleJournal(tmp_path)
    journal.save(consuming_record(1, "a"))
    before = journal.consumed_keys()

    journal.save(consuming_record(2, "b", released=("a",)))

    assert journal.consumed_keys() == {"b"}
    assert before == {"a"}


@pytest.mark.parametrize("who_listed_it", ["no thread", "this thread", "another thread, late"])
def test_findings_of_a_discarded_commit_are_not_known_by_the_next_one(tmp_path: Path, who_listed_it: str) -> None:
    """Its number is given to the next commit."""
    journal = RoleJournal(tmp_path)
    aborted, done = consuming_record(1, "aborted"), consuming_record(1, "done")._replace(at=1.5)
    journal.save(aborted)
    if who_listed_it == "this thread":
        assert journal.consumed_keys() == {"aborted"}
    journal.discard(aborted)
    view = journal.consumed_keys()
    if who_listed_it == "another thread, late":
        assert journal.ledger.keys((aborted,)) == {"aborted"}
    journal.save(done)

    assert journal.consumed_keys() == {"done"}
    assert view == set()


def test_threads_with_different_records_do_not_mix_them_up(tmp_path: Path) -> None:
    """The thread of the status uses records that it listed a moment ago, while the worker commits."""
    ledger = Ledger(tmp_path / "ledger")
    records = [consuming_record(seq, f"key{seq}") for seq in range(1, 9)]
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


def close_and_delete(journal: RoleJournal, record: CommitRecord, data: st.DataObject) -> None:
    """Close the commit, and delete older ones."""
    if data.draw(st.booleans()):
        journal.close(record._replace(state=RecordState.CLOSED))
    for closed in journal.closed_records()[:-1]:
        if data.draw(st.booleans()):
            journal.delete_closed(closed)


@pytest.mark.slow
@given(st.data())
def test_the_undone_jobs_do_not_depend_on_deleted_records(data: st.DataObject) -> None:
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
            record = consuming_record(seq)._replace(job=100 + seq, undoes=() if target is None else (target,))
            journal.save(record)
            close_and_delete(journal, record, data)

            expected = {100 + one for one in range(1, seq + 1) if undone(one)}
            assert journal.undo_index.undone_jobs() == RoleJournal(Path(root)).undo_index.undone_jobs() == expected


@pytest.mark.slow
@given(st.data())
def test_restored_findings_do_not_depend_on_the_list_of_undos(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as root:
        journal = RoleJournal(Path(root))
        for seq in range(1, data.draw(st.integers(2, 9))):
            if data.draw(st.integers(0, 3)) == 0:
                (Path(root) / "undo-seqs").unlink(missing_ok=True)  # the list is missing
            known = [record.seq for record in (*journal.open_records(), *journal.closed_records())]
            target = data.draw(st.sampled_from([None, *known]))
            given_back = WriteRecord(f"reviewer/a{seq}-findings.md", None, f"digest{seq}", "", 0, "")
            undoes = () if target is None else (target,)
            record = consuming_record(seq)._replace(job=100 + seq, undoes=undoes, writes=(given_back,))
            journal.save(record)
            close_and_delete(journal, record, data)

            listed = journal.undo_index.restored_findings(), RoleJournal(Path(root)).undo_index.restored_findings()
            (Path(root) / "undo-seqs").unlink(missing_ok=True)
            looked_for = RoleJournal(Path(root)).undo_index.restored_findings()
            journal.undo_index.build()
            assert {*listed, looked_for} == {journal.undo_index.restored_findings()}


def test_restored_findings_are_known_without_reading_other_commits(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    with sandbox.engine().open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))
    sandbox.engine().undo(1, by_job=2)
    expected = sandbox.engine().collect_notices(sandbox.store).restored_findings

    first = min(sandbox.journal.rglob("records/*.json"))
    first.write_bytes(b"{")
    sandbox.memory.touch()  # so that the file may have changed since

    assert expected
    assert sandbox.engine().collect_notices(sandbox.store).restored_findings == expected


def make_undo_list_unreadable(journal: Path) -> None:
    (listed,) = journal.rglob("undo-seqs")
    listed.unlink()
    listed.mkdir()


def damage_newest_record(journal: Path) -> None:
    max(journal.rglob("records/*.json")).write_bytes(b"{")


@pytest.mark.parametrize("happened", [damage_newest_record, make_undo_list_unreadable])
def test_an_unreadable_journal_hides_no_notice_of_another_role(
    sandbox: Sandbox, happened: Callable[[Path], None]
) -> None:
    review = Notice(1.0, "reverted", "reviewer", "An earlier version was put back.", ("First",))
    other = Role(sandbox.store, "planner")
    other.path.mkdir()
    sandbox.findings("agent", entry("Third"))
    with sandbox.engine().open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))
    sandbox.engine().undo(1, by_job=2)
    happened(sandbox.journal)
    with sandbox.engine().open_role(other):
        pass
    for tag in sandbox.journal.rglob("journal-id"):
        add_notice(tag.parent, review._replace(role=tag.parent.name))
    sandbox.memory.touch()  # so that the file may have changed since

    notes = sandbox.engine().collect_notices(sandbox.store)

    assert {notice.role for notice in notes.notices} == {"planner", "reviewer"}
    assert notes.restored_findings == {}


@pytest.mark.parametrize("below", ["records", "closed"])
def test_a_damaged_record_does_not_stop_retention_for_other_roles(sandbox: Sandbox, below: str) -> None:
    """Nothing of that role is deleted, because its needs cannot be known."""
    for number, role in enumerate((sandbox.role, Role(sandbox.store, "planner")), 1):
        role.path.mkdir(exist_ok=True)
        (role.path / "agent-findings.md").write_bytes(entry("Third"))
        with sandbox.engine().open_role(role) as session:
            session.commit(number, plan_consolidation(session.read()))
    (first,) = sandbox.journal.rglob("reviewer/records/*.json")
    (first.parent.parent / below).mkdir(exist_ok=True)
    (first.parent.parent / below / first.name).write_bytes(b"{")
    images = {path for path in sandbox.journal.rglob("blobs/*") if path.parents[1].name == "reviewer"}
    unwanted = next(sandbox.journal.rglob("planner/blobs")) / ("0" * 64)
    unwanted.write_bytes(b"unwanted")

    assert sandbox.engine().apply_retention() >= len(b"unwanted")

    assert not unwanted.exists()
    assert {path for path in sandbox.journal.rglob("blobs/*") if path.parents[1].name == "reviewer"} == images


def test_the_list_of_undos_is_on_the_disk_before_it_replaces_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list that a power cut leaves empty would mean that nothing was ever restored."""
    journal, synced = RoleJournal(tmp_path), set[int]()
    for seq, undoes in ((1, ()), (2, (1,)), (3, ()), (4, (3,))):
        record = consuming_record(seq)._replace(undoes=undoes, state=RecordState.CLOSED)
        journal.save(record)
        journal.close(record)
    first, *_ = (record for record in journal.closed_records() if record.undoes)

    def sync(fd: int) -> None:
        synced.add(os.fstat(fd).st_ino)
        os.fsync(fd)

    monkeypatch.setattr(files, "full_fsync", sync)
    journal.delete_closed(first)

    assert (tmp_path / "undo-seqs").read_text() == "4\n"
    assert (tmp_path / "undo-seqs").stat().st_ino in synced


def test_a_half_done_commit_is_finished_though_the_undos_before_it_cannot_be_listed(sandbox: Sandbox) -> None:
    """A journal without the list, in which an old closed commit is damaged."""
    commit_killed_after_intent(sandbox)
    (intent,) = sandbox.journal.rglob("records/*.json")
    (sandbox.journal / intent.relative_to(sandbox.journal).parts[0] / "reviewer/undo-seqs").unlink()
    closed = intent.parent.parent / "closed"
    closed.mkdir(exist_ok=True)
    (closed / "00000000.json").write_bytes(b"{")

    sandbox.engine().recover([sandbox.store])

    assert entry("Third") in sandbox.memory.read_bytes()
    assert decode_record(intent.read_bytes()).state is RecordState.APPLIED


@pytest.mark.parametrize(
    "name",
    ["undo-seqs", "restored-findings", "deleted-undos", "notices", "questions", "ledger", "states", "own-mtimes"],
)
def test_garbled_bytes_in_a_file_of_lines_cost_these_lines_only(sandbox: Sandbox, name: str) -> None:
    sandbox.findings("agent", entry("Third"))
    with sandbox.engine().open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))
    sandbox.engine().undo(1, by_job=2)
    expected = sandbox.engine().collect_notices(sandbox.store).restored_findings
    (role,) = sandbox.journal.glob("*/reviewer")
    with (role / name).open("ab") as file:
        file.write(b"\xff\xfe{\x80\n")

    sandbox.findings("other", entry("Fourth"))
    with sandbox.engine().open_role(sandbox.role) as session:
        session.commit(3, plan_consolidation(session.read()))

    assert entry("Fourth") in sandbox.memory.read_bytes()
    assert expected
    assert (
        set(expected[sandbox.role]) <= sandbox.engine().collect_notices(sandbox.store).restored_findings[sandbox.role]
    )


def test_a_journal_without_a_list_of_undos_gets_it_at_the_first_recovery(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    with sandbox.engine().open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))
    sandbox.engine().undo(1, by_job=2)
    (listed,) = sandbox.journal.rglob("undo-seqs")
    before, expected = listed.read_bytes(), sandbox.engine().collect_notices(sandbox.store).restored_findings
    listed.unlink()

    assert sandbox.engine().collect_notices(sandbox.store).restored_findings == expected
    sandbox.engine().recover([sandbox.store])

    assert listed.read_bytes() == before
    assert sandbox.engine().collect_notices(sandbox.store).restored_findings == expected


def test_while_a_role_is_held_its_records_are_read_once_and_are_right(tmp_path: Path) -> None:
    journal = RoleJournal(tmp_path)
    first, second, third = consuming_record(1, "a"), consuming_record(2, "b"), consuming_record(3, "c")
    journal.save(first)
    with journal.exclusive():
        assert journal.open_records() == (first,)
        journal.save(third)
        journal.save(second)
        changed = second._replace(summary="changed")
        journal.save(changed)
        journal.discard(first)

        assert journal.open_records() == (changed, third)
        assert journal.next_seq() == 4
        journal.close(third._replace(state=RecordState.CLOSED))
        assert journal.open_records() == (changed,)
        assert [record.seq for record in journal.closed_records()] == [3]

    assert journal.open_records() == (changed,) == RoleJournal(tmp_path).open_records()


def test_the_newest_state_is_the_last_of_all(tmp_path: Path) -> None:
    journal = RoleJournal(tmp_path)
    assert journal.newest_state() is None
    write = WriteRecord("reviewer/MEMORY.md", "before", "after", ".stage", 1, "before")

    journal.record_states([KnownState("old", 1.0, None, 1.0), KnownState("older", 0.5, None, 0.5)])
    assert journal.newest_state() == journal.states()[-1] == KnownState("old", 1.0, None, 1.0)
    journal.save(consuming_record(2, "a")._replace(writes=(write,)))
    journal.save(consuming_record(3, "b"))
    assert journal.newest_state() == journal.states()[-1] == KnownState("after", 2.0, None, 0.0)
    journal.record_states([KnownState("new", 9.0, "main", 9.0)])
    assert journal.newest_state() == journal.states()[-1] == KnownState("new", 9.0, "main", 9.0)


def test_a_blob_is_exact_or_missing(tmp_path: Path) -> None:
    images = BlobStore(tmp_path)
    name = images.put(b"content")
    assert images.get(name) == b"content"

    (tmp_path / name).write_bytes(b"changed")

    with pytest.raises(BlobMissingError, match="lost"):
        images.get(name)


def test_everything_in_the_journal_is_private(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    with sandbox.engine().open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))

    assert [p for p in sandbox.journal.rglob("*") if p.stat().st_mode & 0o077] == []


def test_recovery_waits_where_the_content_of_an_intent_is_lost(sandbox: Sandbox) -> None:
    commit_killed_after_intent(sandbox)
    shutil.rmtree(next(sandbox.journal.rglob("blobs")))

    recovery = sandbox.engine().recover([sandbox.store])

    assert len(recovery.deferred) == 1
    assert "lost" in recovery.deferred[0].reason


def test_a_role_that_the_user_removed_is_closed_in_time(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    with sandbox.engine().open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))
    shutil.rmtree(sandbox.role.path)
    sandbox.clock_offset = 25 * 3600.0

    sandbox.engine().merge_late_writes(sandbox.store)

    assert list(sandbox.journal.rglob("records/*.json")) == []
    assert not sandbox.role.path.exists()


def test_a_stage_that_another_program_removed_is_written_again(sandbox: Sandbox) -> None:
    commit_killed_after_intent(sandbox)
    for path in sandbox.role.path.glob(".*echod*"):
        path.unlink()

    sandbox.engine().recover([sandbox.store])

    assert sandbox.memory.read_bytes() == HEADER + entry("First") + entry("Second") + entry("Third")


def test_a_role_is_created_once_and_never_through_a_link(sandbox: Sandbox) -> None:
    notes = Role(sandbox.store, "notes")
    sandbox.engine().create_role(notes)
    sandbox.engine().create_role(notes)
    assert notes.path.is_dir()

    (sandbox.store.root / "elsewhere").symlink_to(sandbox.project)
    with pytest.raises(StoreError):
        sandbox.engine().create_role(Role(sandbox.store, "elsewhere"))
