"""What other programs write into files that echod just replaced or took away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from echod.store.commit.commit import Committed
from echod.store.commit.steps import Step
from tests.store.conftest import HEADER, Place, consolidation, entry

BOTH = HEADER + entry("First") + entry("Second")


def consolidate(place: Place) -> Committed:
    with place.engine().open_role(place.role) as session:
        outcome = session.commit(1, consolidation(session.read()))
    assert isinstance(outcome, Committed)
    return outcome


def test_an_append_through_a_descriptor_held_over_the_exchange_is_merged(place: Place) -> None:
    place.findings("agent", entry("Third"))
    fds: list[int] = []

    def writer_opens(step: Step) -> None:
        if step is Step.COMPARED:
            fds.append(os.open(place.memory, os.O_WRONLY | os.O_APPEND))

    with place.engine(writer_opens).open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))
    os.write(fds[0], entry("Late"))
    while_open = place.engine().settle_debts(place.store)
    os.close(fds[0])
    after = place.engine().settle_debts(place.store)

    assert while_open == ()
    assert len(after) == 1
    assert place.memory.read_bytes() == BOTH + entry("Late") + entry("Third")


def test_a_replacement_between_compare_and_exchange_is_merged_at_once(place: Place) -> None:
    place.findings("agent", entry("Third"))

    def replaces(step: Step) -> None:
        if step is Step.INTENDED:
            place.memory.with_suffix(".new").write_bytes(BOTH + entry("Theirs"))
            place.memory.with_suffix(".new").rename(place.memory)

    with place.engine(replaces).open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))

    assert place.memory.read_bytes() == BOTH + entry("Theirs") + entry("Third")


def test_late_findings_are_offered_again_as_a_new_file(place: Place) -> None:
    findings = place.findings("agent", entry("Third"))
    fd = -1

    def holds(step: Step) -> None:
        nonlocal fd
        if step is Step.COMPARED:
            fd = os.open(findings, os.O_WRONLY | os.O_APPEND)

    with place.engine(holds).open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))
    os.write(fd, entry("Fourth"))
    os.close(fd)
    place.engine().settle_debts(place.store)

    late = list(place.role.path.glob("*-findings.md"))
    assert [p.read_bytes() for p in late] == [entry("Fourth")]
    consolidate(place)
    assert place.memory.read_bytes() == BOTH + entry("Third") + entry("Fourth")


def test_settled_debts_close_the_record_and_leave_no_hidden_file(place: Place) -> None:
    place.findings("agent", entry("Third"))
    consolidate(place)
    kept = place.hidden()
    place.now = 25 * 3600.0

    place.engine().settle_debts(place.store)

    assert len(kept) == 2
    assert place.hidden() == []
    assert place.engine().settle_debts(place.store) == ()


def test_the_ledger_outlives_the_record(place: Place) -> None:
    place.findings("agent", entry("Third"))
    consolidate(place)
    with place.engine().open_role(place.role) as session:
        before = session.read().known_keys
    place.now = 25 * 3600.0

    place.engine().settle_debts(place.store)

    with place.engine().open_role(place.role) as session:
        assert session.read().known_keys == before != frozenset()


def test_a_file_that_is_held_open_is_followed_beyond_the_time(place: Place) -> None:
    place.findings("agent", entry("Third"))
    fd = os.open(place.memory, os.O_WRONLY | os.O_APPEND)
    os.close(fd)

    def holds(step: Step) -> None:
        nonlocal fd
        if step is Step.COMPARED:
            fd = os.open(place.memory, os.O_WRONLY | os.O_APPEND)

    with place.engine(holds).open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))
    place.now = 48 * 3600.0
    place.engine().settle_debts(place.store)
    os.write(fd, entry("Late"))
    os.close(fd)
    place.engine().settle_debts(place.store)

    assert entry("Late") in place.memory.read_bytes()


def test_nothing_to_do_writes_nothing_and_takes_no_lock(place: Place) -> None:
    place.findings("agent", entry("Third"))
    consolidate(place)
    tmp = (place.project / "tmp").stat().st_mtime_ns
    journal = {p: p.stat().st_mtime_ns for p in place.journal.rglob("*")}

    place.engine().settle_debts(place.store)

    assert (place.project / "tmp").stat().st_mtime_ns == tmp
    assert {p: p.stat().st_mtime_ns for p in place.journal.rglob("*")} == journal


def replace(path: Path, data: bytes) -> None:
    path.with_suffix(".new").write_bytes(data)
    path.with_suffix(".new").rename(path)


def revised(version: int, others: bytes) -> bytes:
    """What a program has read (`others`) with its own entry in a new version."""
    return others + entry("Status", f"Version {version}.")


def held_over_the_exchange(place: Place, agent: str, replacement: bytes) -> int:
    """A commit in whose last moment somebody replaces the file; a descriptor through which that one can be written."""
    place.findings(agent, entry(f"Found by {agent}"))
    held: list[int] = []

    def replaces(step: Step) -> None:
        if step is Step.INTENDED and not held:
            replace(place.memory, replacement)
            held.append(os.open(place.memory, os.O_WRONLY | os.O_APPEND))

    with place.engine(replaces).open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))
    return held[0]


def versions(place: Place) -> list[bytes]:
    """The versions of the entry that stand in the memory."""
    return [line for line in place.memory.read_bytes().splitlines() if line.startswith(b"Version ")]


def kept_in_archives(place: Place) -> bytes:
    return b"".join(path.read_bytes() for path in place.archive.glob("*.md"))


@pytest.mark.parametrize("before", [b"", entry("Status", "Version 0.")], ids=["a new entry", "an entry that was there"])
def test_an_older_version_that_comes_late_never_stands_beside_the_newer_one(place: Place, before: bytes) -> None:
    place.memory.write_bytes(BOTH + before)
    first = held_over_the_exchange(place, "one", revised(1, BOTH + entry("Theirs")))
    replace(place.memory, revised(2, BOTH + entry("Theirs")))  # by the same program, which had read its first

    place.engine().settle_debts(place.store)
    os.close(first)
    place.engine().settle_debts(place.store)

    assert versions(place) == [b"Version 2."]
    assert b"Version 1." in kept_in_archives(place)
    assert place.memory.read_bytes().count(b"Found by one") == 1


@pytest.mark.parametrize("before", [b"", entry("Status", "Version 0.")], ids=["a new entry", "an entry that was there"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["first first", "last first"])
def test_of_two_versions_that_come_late_the_newer_one_stands(
    place: Place, before: bytes, order: tuple[int, int]
) -> None:
    place.memory.write_bytes(BOTH + before)
    held = (
        held_over_the_exchange(place, "one", revised(1, BOTH + entry("Theirs"))),
        held_over_the_exchange(place, "two", revised(2, BOTH + entry("Theirs"))),
    )

    for which in order:
        os.close(held[which])
        place.engine().settle_debts(place.store)

    assert versions(place) == [b"Version 2."]
    assert b"Version 1." in kept_in_archives(place)
    for found in (b"Found by one", b"Found by two", b"Theirs"):
        assert place.memory.read_bytes().count(found) == 1


@pytest.mark.parametrize("before", [b"", entry("Status", "Version 0.")], ids=["a new entry", "an entry that was there"])
def test_a_version_that_the_merge_of_an_older_one_displaces_is_the_newer_one(place: Place, before: bytes) -> None:
    place.memory.write_bytes(BOTH + before)
    os.close(held_over_the_exchange(place, "one", revised(1, BOTH)))
    done = False

    def replaces(step: Step) -> None:
        nonlocal done
        if step is Step.INTENDED and not done:  # its program reads while version 1 is not to be seen
            done = True
            replace(place.memory, revised(2, BOTH + entry("Found by one")))

    engine = place.engine(replaces, displaced_hours=0.0)
    for _ in range(3):
        engine.settle_debts(place.store)

    assert versions(place) == [b"Version 2."]
    assert b"Version 1." in kept_in_archives(place)
    assert not [name for name in place.hidden() if "echod" in name]


def test_of_two_versions_that_are_put_together_by_healing_the_one_on_the_disk_stands(place: Place) -> None:
    held = held_over_the_exchange(place, "one", revised(1, BOTH))
    os.close(held)
    place.engine().settle_debts(place.store)
    before = versions(place)

    replace(place.memory, revised(2, BOTH))  # a stale writer: it does not know what was found

    place.engine().settle_debts(place.store)
    assert before == [b"Version 1."]
    assert versions(place) == [b"Version 2."]
    assert place.memory.read_bytes().count(b"Found by one") == 1
