"""A role with very many findings: what is taken up by parts can be taken back, and no part pays for the others."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import PurePosixPath

import pytest

from echod.store import layout
from echod.store.changes import Begin, ChangeSet, Consume, Write
from echod.store.commit.steps import Step
from echod.store.engine import Engine
from echod.store.fs import Dir
from echod.store.snapshot import MAX_FILE_BYTES, digest
from tests.store.conftest import HEADER, Place, consolidation, die_at, entry
from tests.support import in_child

PARTS = [entry(title) for title in ("Third", "Fourth", "Fifth")]
BEFORE = HEADER + entry("First") + entry("Second")


def begin(engine: Engine, place: Place, job: int, part: int) -> None:
    """Take the entry `part` out of a findings file that stays."""
    with engine.open_role(place.role) as session:
        view = session.read()
        (found,) = view.findings
        write = Write(PurePosixPath("reviewer/MEMORY.md"), view.memory.digest, view.memory.text + PARTS[part])
        begun = Begin(found.digest or "", (f"key-{part}",))
        session.commit(job, ChangeSet("consolidate", "reviewer", f"part {part}", (write,), begins=(begun,)))


def finish(engine: Engine, place: Place, job: int, part: int) -> None:
    """Take the last entry and the file."""
    with engine.open_role(place.role) as session:
        view = session.read()
        (found,) = view.findings
        path = PurePosixPath("reviewer", found.path.name)
        kept = PurePosixPath("reviewer/archive/findings/agent.md")
        session.commit(
            job,
            ChangeSet(
                "consolidate",
                "reviewer",
                f"part {part}",
                (Write(PurePosixPath("reviewer/MEMORY.md"), view.memory.digest, view.memory.text + PARTS[part]),),
                consumes=(Consume(path, found.digest or "", kept, found.text, (f"key-{part}",)),),
            ),
        )


def test_a_file_of_which_a_part_was_taken_stays_and_its_findings_are_known(place: Place) -> None:
    path = place.findings("agent", *PARTS)
    begin(place.engine(), place, 1, 0)

    view = place.engine().peek(place.role)

    assert path.read_bytes() == b"".join(PARTS)
    assert view.known_keys == {"key-0"}
    assert view.begun == {digest(path.read_bytes())}
    assert not view.undone
    assert place.memory.read_bytes() == BEFORE + PARTS[0]


def test_parts_undone_in_reverse_give_the_first_bytes(place: Place) -> None:
    path = place.findings("agent", *PARTS)
    engine = place.engine()
    begin(engine, place, 1, 0)
    begin(engine, place, 2, 1)
    finish(engine, place, 3, 2)
    assert not path.exists()

    for undo, job in enumerate((3, 2, 1), start=4):
        engine.undo(job, by=undo)

    view = engine.peek(place.role)
    assert (place.memory.read_bytes(), path.read_bytes()) == (BEFORE, b"".join(PARTS))
    assert view.known_keys == set()
    assert view.undone == {digest(path.read_bytes())}


def test_a_part_that_was_taken_back_is_not_taken_again_unasked(place: Place) -> None:
    path = place.findings("agent", *PARTS)
    begin(place.engine(), place, 1, 0)

    place.engine().undo(1, by=2)

    assert place.memory.read_bytes() == BEFORE
    view = place.engine().peek(place.role)
    assert not view.known_keys
    assert view.undone == {digest(path.read_bytes())}
    place.engine().undo(2, by=3)
    view = place.engine().peek(place.role)
    assert view.known_keys == {"key-0"}
    assert not view.undone
    assert place.memory.read_bytes() == BEFORE + PARTS[0]


def test_that_a_part_was_taken_back_outlives_its_record(place: Place) -> None:
    place.findings("agent", *PARTS)
    begin(place.engine(), place, 1, 0)
    place.engine().undo(1, by=2)
    withheld = place.engine().peek(place.role).undone

    for days in (2, 20, 40):
        place.now = days * 86_400.0
        place.engine().settle_debts(place.store)
        place.engine().retain()

    assert place.engine().peek(place.role).undone == withheld != frozenset()


def test_a_part_that_is_gone_from_the_memory_a_moment_later_is_put_back(place: Place) -> None:
    """A stale copy of the memory file must not cost what was taken from a file that stays."""
    place.findings("agent", *PARTS)
    begin(place.engine(), place, 1, 0)
    place.memory.write_bytes(BEFORE + entry("Of others"))

    with place.engine().open_role(place.role) as session:
        assert PARTS[0] in session.read().memory.text


def test_a_killed_part_is_finished_and_known(place: Place) -> None:
    place.findings("agent", *PARTS)

    assert in_child(lambda: begin(place.engine(die_at(Step.INTENDED)), place, 1, 0)) == 137
    place.engine().recover([place.store])

    assert place.memory.read_bytes() == BEFORE + PARTS[0]
    assert place.engine().peek(place.role).known_keys == {"key-0"}


def test_what_a_killed_process_staged_is_swept_by_one_that_was_running_already(place: Place) -> None:
    place.findings("agent", PARTS[0])
    running = place.engine()
    with running.open_role(place.role):
        pass

    def dies() -> None:
        with place.engine(die_at(Step.STAGED)).open_role(place.role) as session:
            session.commit(1, consolidation(session.read()))

    assert in_child(dies) == 137
    assert len(place.hidden()) == 1

    with running.open_role(place.role) as session:
        assert place.hidden() == []
        session.commit(2, consolidation(session.read()))

    assert place.memory.read_bytes() == BEFORE + PARTS[0]


def test_a_role_in_which_nobody_was_killed_is_not_looked_through_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = place.engine()
    with engine.open_role(place.role) as session:
        place.findings("agent", PARTS[0])
        session.commit(1, consolidation(session.read()))
    listed: list[object] = []

    def names(directory: Dir) -> list[str]:
        listed.append(directory.path)
        return []

    monkeypatch.setattr(Dir, "names", names)

    with engine.open_role(place.role):
        pass

    assert listed == []


def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are opened from now on."""
    names: list[str] = []
    really = os.open

    def noting(path: object, *args: object, **kwargs: object) -> int:
        names.append(os.fspath(path).rpartition("/")[2] if isinstance(path, str | os.PathLike) else str(path))
        return really(path, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", noting)
    return names


def test_files_to_which_nobody_can_write_any_more_are_looked_at_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = place.engine()
    for agent in range(20):
        place.findings(f"agent{agent}", entry(f"Lesson {agent}"))
    with engine.open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))
    engine.settle_debts(place.store)

    names = opened(monkeypatch)
    engine.settle_debts(place.store)

    assert [name for name in names if name.startswith(".agent")] == []


def test_a_file_of_ours_that_someone_changed_all_the_same_is_not_thrown_away(place: Place) -> None:
    """Nobody should know its name; whoever wrote to it loses nothing."""
    engine = place.engine()
    place.findings("agent", PARTS[0])
    with engine.open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))
    engine.settle_debts(place.store)
    (claimed,) = [place.role.path / name for name in place.hidden() if name.startswith(".agent")]
    with claimed.open("ab") as file:
        file.write(PARTS[1])

    place.now = 25 * 3600.0
    engine.settle_debts(place.store)
    engine.settle_debts(place.store)

    assert any(PARTS[1] in text for text in place.texts().values())


def test_numbers_of_a_lost_journal_are_given_again_and_late_bytes_still_seen(place: Place) -> None:
    engine = place.engine()
    place.findings("agent", PARTS[0])
    with engine.open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))
    engine.settle_debts(place.store)
    shutil.rmtree(place.journal)
    held = os.open(place.findings("other", PARTS[1]), os.O_WRONLY | os.O_APPEND)
    os.close(held)

    def holds(step: Step) -> None:
        nonlocal held
        if step is Step.COMPARED:
            held = os.open(place.role.path / "other-findings.md", os.O_WRONLY | os.O_APPEND)

    with place.engine(holds).open_role(place.role) as session:
        session.commit(2, consolidation(session.read()))
    os.write(held, PARTS[2])
    os.close(held)
    engine.settle_debts(place.store)

    assert any(PARTS[2] in text for text in place.texts().values())


def test_of_very_many_findings_some_are_read_and_the_others_wait(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(800):
        place.findings(f"agent{number}", PARTS[0])

    names = opened(monkeypatch)
    with place.engine().open_role(place.role) as session:
        found = session.read().findings

    assert 500 <= len(found) < 700
    assert sum(name.endswith("-findings.md") for name in names) == len(found)


def test_findings_that_cannot_be_taken_do_not_hide_those_that_can(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many are too large, still being written, or given back: they take nobody's place."""
    monkeypatch.setattr(layout, "MANY", 50)
    for number in range(120):
        with place.findings(f"a{number}").open("wb") as file:
            file.truncate(MAX_FILE_BYTES + 1)
        young = place.findings(f"b{number}", PARTS[1])
        os.utime(young, (time.time() - 5, time.time() - 5))
    old = place.findings("z", PARTS[0])
    os.utime(old, (time.time() - 100, time.time() - 100))

    with place.engine().open_role(place.role) as session:
        view = session.read(still_seconds=30)

    assert [found.path.name for found in view.findings] == ["z-findings.md"]
    assert sum("larger than 10 MiB" in busy.reason for busy in view.busy) == 120
    waiting = [busy.until for busy in view.busy if busy.until is not None]
    assert len(waiting) == 120
    assert all(20 < until - time.time() <= 26 for until in waiting)


def test_given_back_findings_do_not_hide_others(place: Place) -> None:
    engine = place.engine()
    for number in range(700):
        place.findings(f"agent{number}", entry(f"Lesson {number}"))
    with engine.open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))
    with engine.open_role(place.role) as session:
        session.commit(2, consolidation(session.read()))
    engine.undo(2, by=3)
    engine.undo(1, by=4)
    new = place.findings("zoe", PARTS[0])

    view = engine.peek(place.role)

    assert new in [found.path for found in view.findings if found.digest not in view.undone]


def test_up_to_many_files_come_in_the_order_of_their_names(place: Place) -> None:
    for number in (3, 1, 2):
        place.findings(f"agent{number}", PARTS[0])

    assert list(layout.each_findings_file(place.role)) == [f"agent{number}-findings.md" for number in (1, 2, 3)]


def test_one_listing_tells_what_a_role_holds_and_says_nothing_of_what_it_did_not_reach(place: Place) -> None:
    for number in range(3):
        place.findings(f"agent{number}", entry("Third"))
    (place.role.path / "link-findings.md").symlink_to("agent1-findings.md")
    (place.role.path / layout.QUARANTINE).mkdir()

    whole, cut = layout.contents_of(place.role, 9), layout.contents_of(place.role, 2)

    assert whole == layout.Contents(3, knowledge=False, quarantine=True)
    assert cut == layout.Contents(2, knowledge=True, quarantine=True)


@pytest.mark.parametrize("most", [1, 50, 119, 120, 500])
def test_of_more_than_many_files_each_is_seen_once(place: Place, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(layout, "MANY", 50)
    for number in range(120):
        place.findings(f"agent{number}", PARTS[0])

    found = layout.findings_of(place.role, most)

    assert len(set(found)) == len(found) == min(most, 120)
    assert list(found) == sorted(found)
