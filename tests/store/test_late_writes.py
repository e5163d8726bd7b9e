"""Writes of other programs into files that echod just replaced or removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from echod.store.changes import CommitResult
from echod.store.commit.context import CommitStep
from tests.store.conftest import HEADER, Sandbox, entry, plan_consolidation

BOTH = HEADER + entry("First") + entry("Second")


def consolidate(sandbox: Sandbox) -> CommitResult:
    with sandbox.engine().open_role(sandbox.role) as session:
        outcome = session.commit(1, plan_consolidation(session.read()))
    assert isinstance(outcome, CommitResult)
    return outcome


def test_an_append_through_a_descriptor_held_over_the_exchange_is_merged(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    fds: list[int] = []

    def writer_opens(step: CommitStep) -> None:
        if step is CommitStep.COMPARED:
            fds.append(os.open(sandbox.memory, os.O_WRONLY | os.O_APPEND))

    with sandbox.engine(writer_opens).open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))
    os.write(fds[0], entry("Late"))
    while_open = sandbox.engine().merge_late_writes(sandbox.store)
    os.close(fds[0])
    after = sandbox.engine().merge_late_writes(sandbox.store)

    assert while_open == ()
    assert len(after) == 1
    assert sandbox.memory.read_bytes() == BOTH + entry("Late") + entry("Third")


def test_a_replacement_between_compare_and_exchange_is_merged_at_once(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))

    def replaces(step: CommitStep) -> None:
        if step is CommitStep.INTENT_WRITTEN:
            sandbox.memory.with_suffix(".new").write_bytes(BOTH + entry("Theirs"))
            sandbox.memory.with_suffix(".new").rename(sandbox.memory)

    with sandbox.engine(replaces).open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))

    assert sandbox.memory.read_bytes() == BOTH + entry("Theirs") + entry("Third")


def test_late_findings_are_offered_again_as_a_new_file(sandbox: Sandbox) -> None:
    findings = sandbox.findings("agent", entry("Third"))
    fd = -1

    def holds(step: CommitStep) -> None:
        nonlocal fd
        if step is CommitStep.COMPARED:
            fd = os.open(findings, os.O_WRONLY | os.O_APPEND)

    with sandbox.engine(holds).open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))
    os.write(fd, entry("Fourth"))
    os.close(fd)
    sandbox.engine().merge_late_writes(sandbox.store)

    late = list(sandbox.role.path.glob("*-findings.md"))
    assert [p.read_bytes() for p in late] == [entry("Fourth")]
    consolidate(sandbox)
    assert sandbox.memory.read_bytes() == BOTH + entry("Third") + entry("Fourth")


def test_merged_late_writes_close_the_record_and_leave_no_hidden_file(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    consolidate(sandbox)
    kept = sandbox.hidden_names()
    sandbox.clock_offset = 25 * 3600.0

    sandbox.engine().merge_late_writes(sandbox.store)

    assert len(kept) == 2
    assert sandbox.hidden_names() == []
    assert sandbox.engine().merge_late_writes(sandbox.store) == ()


def test_the_ledger_outlives_the_record(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    consolidate(sandbox)
    with sandbox.engine().open_role(sandbox.role) as session:
        before = session.read().consumed_keys
    sandbox.clock_offset = 25 * 3600.0

    sandbox.engine().merge_late_writes(sandbox.store)

    with sandbox.engine().open_role(sandbox.role) as session:
        assert session.read().consumed_keys == before != frozenset()


def test_a_file_that_is_held_open_is_followed_beyond_the_time(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    fd = os.open(sandbox.memory, os.O_WRONLY | os.O_APPEND)
    os.close(fd)

    def holds(step: CommitStep) -> None:
        nonlocal fd
        if step is CommitStep.COMPARED:
            fd = os.open(sandbox.memory, os.O_WRONLY | os.O_APPEND)

    with sandbox.engine(holds).open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))
    sandbox.clock_offset = 48 * 3600.0
    sandbox.engine().merge_late_writes(sandbox.store)
    os.write(fd, entry("Late"))
    os.close(fd)
    sandbox.engine().merge_late_writes(sandbox.store)

    assert entry("Late") in sandbox.memory.read_bytes()


def test_nothing_to_do_writes_nothing_and_takes_no_lock(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    consolidate(sandbox)
    tmp = (sandbox.project / "tmp").stat().st_mtime_ns
    journal = {p: p.stat().st_mtime_ns for p in sandbox.journal.rglob("*")}

    sandbox.engine().merge_late_writes(sandbox.store)

    assert (sandbox.project / "tmp").stat().st_mtime_ns == tmp
    assert {p: p.stat().st_mtime_ns for p in sandbox.journal.rglob("*")} == journal


def replace_by_rename(path: Path, data: bytes) -> None:
    path.with_suffix(".new").write_bytes(data)
    path.with_suffix(".new").rename(path)


def with_status_version(version: int, others: bytes) -> bytes:
    """Return the content that a program read (`others`) with its own entry in a new version."""
    return others + entry("Status", f"Version {version}.")


def hold_displaced_file(sandbox: Sandbox, agent: str, replacement: bytes) -> int:
    """Commit while another program replaces the file at the last moment, and open the displaced file for writing."""
    sandbox.findings(agent, entry(f"Found by {agent}"))
    descriptors: list[int] = []

    def replaces(step: CommitStep) -> None:
        if step is CommitStep.INTENT_WRITTEN and not descriptors:
            replace_by_rename(sandbox.memory, replacement)
            descriptors.append(os.open(sandbox.memory, os.O_WRONLY | os.O_APPEND))

    with sandbox.engine(replaces).open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))
    return descriptors[0]


def versions(sandbox: Sandbox) -> list[bytes]:
    """Return the versions of the entry in the memory."""
    return [line for line in sandbox.memory.read_bytes().splitlines() if line.startswith(b"Version ")]


def archive_bytes(sandbox: Sandbox) -> bytes:
    return b"".join(path.read_bytes() for path in sandbox.archive.glob("*.md"))


@pytest.mark.parametrize("before", [b"", entry("Status", "Version 0.")], ids=["a new entry", "an entry that was there"])
def test_an_older_late_version_is_never_beside_the_newer_one(sandbox: Sandbox, before: bytes) -> None:
    sandbox.memory.write_bytes(BOTH + before)
    first = hold_displaced_file(sandbox, "one", with_status_version(1, BOTH + entry("Theirs")))
    replace_by_rename(
        sandbox.memory, with_status_version(2, BOTH + entry("Theirs"))
    )  # by the same program, which had read its first version

    sandbox.engine().merge_late_writes(sandbox.store)
    os.close(first)
    sandbox.engine().merge_late_writes(sandbox.store)

    assert versions(sandbox) == [b"Version 2."]
    assert b"Version 1." in archive_bytes(sandbox)
    assert sandbox.memory.read_bytes().count(b"Found by one") == 1


@pytest.mark.parametrize("before", [b"", entry("Status", "Version 0.")], ids=["a new entry", "an entry that was there"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["first first", "last first"])
def test_of_two_late_versions_the_newer_one_wins(sandbox: Sandbox, before: bytes, order: tuple[int, int]) -> None:
    sandbox.memory.write_bytes(BOTH + before)
    held = (
        hold_displaced_file(sandbox, "one", with_status_version(1, BOTH + entry("Theirs"))),
        hold_displaced_file(sandbox, "two", with_status_version(2, BOTH + entry("Theirs"))),
    )

    for which in order:
        os.close(held[which])
        sandbox.engine().merge_late_writes(sandbox.store)

    assert versions(sandbox) == [b"Version 2."]
    assert b"Version 1." in archive_bytes(sandbox)
    for found in (b"Found by one", b"Found by two", b"Theirs"):
        assert sandbox.memory.read_bytes().count(found) == 1


@pytest.mark.parametrize("before", [b"", entry("Status", "Version 0.")], ids=["a new entry", "an entry that was there"])
def test_a_version_that_the_merge_of_an_older_one_displaces_is_the_newer_one(sandbox: Sandbox, before: bytes) -> None:
    sandbox.memory.write_bytes(BOTH + before)
    os.close(hold_displaced_file(sandbox, "one", with_status_version(1, BOTH)))
    done = False

    def replaces(step: CommitStep) -> None:
        nonlocal done
        if step is CommitStep.INTENT_WRITTEN and not done:  # its program reads while version 1 is not visible
            done = True
            replace_by_rename(sandbox.memory, with_status_version(2, BOTH + entry("Found by one")))

    engine = sandbox.engine(replaces, displaced_hours=0.0)
    for _ in range(3):
        engine.merge_late_writes(sandbox.store)

    assert versions(sandbox) == [b"Version 2."]
    assert b"Version 1." in archive_bytes(sandbox)
    assert not [name for name in sandbox.hidden_names() if "echod" in name]


def test_of_two_versions_merged_by_healing_the_one_on_disk_wins(sandbox: Sandbox) -> None:
    held = hold_displaced_file(sandbox, "one", with_status_version(1, BOTH))
    os.close(held)
    sandbox.engine().merge_late_writes(sandbox.store)
    before = versions(sandbox)

    replace_by_rename(sandbox.memory, with_status_version(2, BOTH))  # a stale writer, which has not read the findings

    sandbox.engine().merge_late_writes(sandbox.store)
    assert before == [b"Version 1."]
    assert versions(sandbox) == [b"Version 2."]
    assert sandbox.memory.read_bytes().count(b"Found by one") == 1
