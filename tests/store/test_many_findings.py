"""A role with very many findings: partial consumes can be undone, and no part affects the others."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import PurePosixPath

import pytest

from echod.files import content_digest
from echod.memory import MAX_FILE_BYTES
from echod.store import layout
from echod.store.changes import ChangeSet, ConsumeFindings, PartialConsume, Write
from echod.store.commit.context import CommitStep
from echod.store.engine import Engine
from echod.store.fs import Dir
from tests.store.conftest import HEADER, Sandbox, die_at, entry, plan_consolidation
from tests.support import run_in_child

PARTS = [entry(title) for title in ("Third", "Fourth", "Fifth")]
BEFORE = HEADER + entry("First") + entry("Second")


def consume_part(engine: Engine, sandbox: Sandbox, job: int, part: int) -> None:
    """Consume the entry `part` of a findings file that remains."""
    with engine.open_role(sandbox.role) as session:
        view = session.read()
        (found,) = view.findings
        write = Write(PurePosixPath("reviewer/MEMORY.md"), view.memory.digest, view.memory.text + PARTS[part])
        begun = PartialConsume(found.digest or "", (f"key-{part}",))
        session.commit(job, ChangeSet("consolidate", "reviewer", f"part {part}", (write,), partial_consumes=(begun,)))


def consume_rest(engine: Engine, sandbox: Sandbox, job: int, part: int) -> None:
    """Consume the last entry and the file."""
    with engine.open_role(sandbox.role) as session:
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
                consumes=(ConsumeFindings(path, found.digest or "", kept, found.text, (f"key-{part}",)),),
            ),
        )


def test_a_partially_consumed_file_remains_and_its_findings_are_known(sandbox: Sandbox) -> None:
    path = sandbox.findings("agent", *PARTS)
    consume_part(sandbox.engine(), sandbox, 1, 0)

    view = sandbox.engine().read_role(sandbox.role)

    assert path.read_bytes() == b"".join(PARTS)
    assert view.consumed_keys == {"key-0"}
    assert view.partially_consumed == {content_digest(path.read_bytes())}
    assert not view.restored_findings
    assert sandbox.memory.read_bytes() == BEFORE + PARTS[0]


def test_parts_undone_in_reverse_give_the_first_bytes(sandbox: Sandbox) -> None:
    path = sandbox.findings("agent", *PARTS)
    engine = sandbox.engine()
    consume_part(engine, sandbox, 1, 0)
    consume_part(engine, sandbox, 2, 1)
    consume_rest(engine, sandbox, 3, 2)
    assert not path.exists()

    for undo, job in enumerate((3, 2, 1), start=4):
        engine.undo(job, by_job=undo)

    view = engine.read_role(sandbox.role)
    assert (sandbox.memory.read_bytes(), path.read_bytes()) == (BEFORE, b"".join(PARTS))
    assert view.consumed_keys == set()
    assert view.restored_findings == {content_digest(path.read_bytes())}


def test_an_undone_part_is_not_consumed_again_automatically(sandbox: Sandbox) -> None:
    path = sandbox.findings("agent", *PARTS)
    consume_part(sandbox.engine(), sandbox, 1, 0)

    sandbox.engine().undo(1, by_job=2)

    assert sandbox.memory.read_bytes() == BEFORE
    view = sandbox.engine().read_role(sandbox.role)
    assert not view.consumed_keys
    assert view.restored_findings == {content_digest(path.read_bytes())}
    sandbox.engine().undo(2, by_job=3)
    view = sandbox.engine().read_role(sandbox.role)
    assert view.consumed_keys == {"key-0"}
    assert not view.restored_findings
    assert sandbox.memory.read_bytes() == BEFORE + PARTS[0]


def test_the_undo_of_a_part_outlives_its_record(sandbox: Sandbox) -> None:
    sandbox.findings("agent", *PARTS)
    consume_part(sandbox.engine(), sandbox, 1, 0)
    sandbox.engine().undo(1, by_job=2)
    withheld = sandbox.engine().read_role(sandbox.role).restored_findings

    for days in (2, 20, 40):
        sandbox.clock_offset = days * 86_400.0
        sandbox.engine().merge_late_writes(sandbox.store)
        sandbox.engine().apply_retention()

    assert sandbox.engine().read_role(sandbox.role).restored_findings == withheld != frozenset()


def test_a_part_that_vanishes_from_the_memory_a_moment_later_is_restored(sandbox: Sandbox) -> None:
    """A stale copy of the memory file must not lose findings that were consumed from a file that remains."""
    sandbox.findings("agent", *PARTS)
    consume_part(sandbox.engine(), sandbox, 1, 0)
    sandbox.memory.write_bytes(BEFORE + entry("Of others"))

    with sandbox.engine().open_role(sandbox.role) as session:
        assert PARTS[0] in session.read().memory.text


def test_a_killed_part_is_finished_and_known(sandbox: Sandbox) -> None:
    sandbox.findings("agent", *PARTS)

    assert run_in_child(lambda: consume_part(sandbox.engine(die_at(CommitStep.INTENT_WRITTEN)), sandbox, 1, 0)) == 137
    sandbox.engine().recover([sandbox.store])

    assert sandbox.memory.read_bytes() == BEFORE + PARTS[0]
    assert sandbox.engine().read_role(sandbox.role).consumed_keys == {"key-0"}


def test_staged_files_of_a_killed_process_are_swept_by_one_already_running(sandbox: Sandbox) -> None:
    sandbox.findings("agent", PARTS[0])
    running = sandbox.engine()
    with running.open_role(sandbox.role):
        pass

    def dies() -> None:
        with sandbox.engine(die_at(CommitStep.STAGED)).open_role(sandbox.role) as session:
            session.commit(1, plan_consolidation(session.read()))

    assert run_in_child(dies) == 137
    assert len(sandbox.hidden_names()) == 1

    with running.open_role(sandbox.role) as session:
        assert sandbox.hidden_names() == []
        session.commit(2, plan_consolidation(session.read()))

    assert sandbox.memory.read_bytes() == BEFORE + PARTS[0]


def test_a_role_without_a_kill_is_not_listed_again(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = sandbox.engine()
    with engine.open_role(sandbox.role) as session:
        sandbox.findings("agent", PARTS[0])
        session.commit(1, plan_consolidation(session.read()))
    listed: list[object] = []

    def names(directory: Dir) -> list[str]:
        listed.append(directory.path)
        return []

    monkeypatch.setattr(Dir, "list_names", names)

    with engine.open_role(sandbox.role):
        pass

    assert listed == []


def record_opened_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the files that are opened from now on."""
    names: list[str] = []
    really = os.open

    def noting(path: object, *args: object, **kwargs: object) -> int:
        names.append(os.fspath(path).rpartition("/")[2] if isinstance(path, str | os.PathLike) else str(path))
        return really(path, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", noting)
    return names


def test_files_that_no_process_can_write_any_more_are_checked_once(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = sandbox.engine()
    for agent in range(20):
        sandbox.findings(f"agent{agent}", entry(f"Lesson {agent}"))
    with engine.open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))
    engine.merge_late_writes(sandbox.store)

    names = record_opened_files(monkeypatch)
    engine.merge_late_writes(sandbox.store)

    assert [name for name in names if name.startswith(".agent")] == []


def test_a_displaced_file_that_was_changed_all_the_same_is_not_removed(sandbox: Sandbox) -> None:
    """No other program should know its name, but a write to it is not lost."""
    engine = sandbox.engine()
    sandbox.findings("agent", PARTS[0])
    with engine.open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))
    engine.merge_late_writes(sandbox.store)
    (claimed,) = [sandbox.private / name for name in sandbox.hidden_names() if name.startswith(".agent")]
    with claimed.open("ab") as file:
        file.write(PARTS[1])

    sandbox.clock_offset = 25 * 3600.0
    engine.merge_late_writes(sandbox.store)
    engine.merge_late_writes(sandbox.store)

    assert any(PARTS[1] in text for text in sandbox.visible_files().values())


def test_numbers_of_a_lost_journal_are_given_again_and_late_bytes_still_seen(sandbox: Sandbox) -> None:
    engine = sandbox.engine()
    sandbox.findings("agent", PARTS[0])
    with engine.open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))
    engine.merge_late_writes(sandbox.store)
    shutil.rmtree(sandbox.journal)
    held = os.open(sandbox.findings("other", PARTS[1]), os.O_WRONLY | os.O_APPEND)
    os.close(held)

    def holds(step: CommitStep) -> None:
        nonlocal held
        if step is CommitStep.COMPARED:
            held = os.open(sandbox.role.path / "other-findings.md", os.O_WRONLY | os.O_APPEND)

    with sandbox.engine(holds).open_role(sandbox.role) as session:
        session.commit(2, plan_consolidation(session.read()))
    os.write(held, PARTS[2])
    os.close(held)
    engine.merge_late_writes(sandbox.store)

    assert any(PARTS[2] in text for text in sandbox.visible_files().values())


def test_of_very_many_findings_some_are_read_and_the_others_wait(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(800):
        sandbox.findings(f"agent{number}", PARTS[0])

    names = record_opened_files(monkeypatch)
    with sandbox.engine().open_role(sandbox.role) as session:
        found = session.read().findings

    assert 500 <= len(found) < 700
    assert sum(name.endswith("-findings.md") for name in names) == len(found)


def test_unavailable_findings_do_not_hide_the_others(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are too large, still being written or restored take no place in the limit."""
    monkeypatch.setattr(layout, "MAX_SORTED_FINDINGS", 50)
    for number in range(120):
        with sandbox.findings(f"a{number}").open("wb") as file:
            file.truncate(MAX_FILE_BYTES + 1)
        young = sandbox.findings(f"b{number}", PARTS[1])
        os.utime(young, (time.time() - 5, time.time() - 5))
    old = sandbox.findings("z", PARTS[0])
    os.utime(old, (time.time() - 100, time.time() - 100))

    with sandbox.engine().open_role(sandbox.role) as session:
        view = session.read(min_age_seconds=30)

    assert [found.path.name for found in view.findings] == ["z-findings.md"]
    assert sum("larger than 10 MiB" in busy.reason for busy in view.unavailable_findings) == 120
    waiting = [busy.until for busy in view.unavailable_findings if busy.until is not None]
    assert len(waiting) == 120
    assert all(20 < until - time.time() <= 26 for until in waiting)


def test_restored_findings_do_not_hide_the_others(sandbox: Sandbox) -> None:
    engine = sandbox.engine()
    for number in range(700):
        sandbox.findings(f"agent{number}", entry(f"Lesson {number}"))
    with engine.open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))
    with engine.open_role(sandbox.role) as session:
        session.commit(2, plan_consolidation(session.read()))
    engine.undo(2, by_job=3)
    engine.undo(1, by_job=4)
    new = sandbox.findings("zoe", PARTS[0])

    view = engine.read_role(sandbox.role)

    assert new in [found.path for found in view.findings if found.digest not in view.restored_findings]


def test_up_to_many_files_come_in_the_order_of_their_names(sandbox: Sandbox) -> None:
    for number in (3, 1, 2):
        sandbox.findings(f"agent{number}", PARTS[0])

    assert list(layout.iter_findings_files(sandbox.role)) == [f"agent{number}-findings.md" for number in (1, 2, 3)]


def test_one_listing_summarizes_a_role_and_assumes_the_part_it_did_not_reach(sandbox: Sandbox) -> None:
    for number in range(3):
        sandbox.findings(f"agent{number}", entry("Third"))
    (sandbox.role.path / "link-findings.md").symlink_to("agent1-findings.md")
    (sandbox.role.path / layout.QUARANTINE).mkdir()

    whole, cut = layout.summarize_role(sandbox.role, 9), layout.summarize_role(sandbox.role, 2)

    assert whole == layout.RoleSummary(3, has_knowledge=False, has_quarantine=True)
    assert cut == layout.RoleSummary(2, has_knowledge=True, has_quarantine=True)


@pytest.mark.parametrize("most", [1, 50, 119, 120, 500])
def test_of_more_than_many_files_each_is_seen_once(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(layout, "MAX_SORTED_FINDINGS", 50)
    for number in range(120):
        sandbox.findings(f"agent{number}", PARTS[0])

    found = layout.list_findings_files(sandbox.role, most)

    assert len(set(found)) == len(found) == min(most, 120)
    assert list(found) == sorted(found)
