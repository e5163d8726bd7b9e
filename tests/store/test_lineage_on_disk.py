"""Stale writers are repaired, and changes of the user are accepted."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from echod.store.errors import BusyError
from tests.store.conftest import HEADER, Sandbox, entry, plan_consolidation

BOTH = HEADER + entry("First") + entry("Second")
THIRD = entry("Third")
AND_THIRD = BOTH + THIRD


def consolidate(sandbox: Sandbox) -> None:
    with sandbox.engine().open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))


def read_memory(sandbox: Sandbox) -> bytes:
    with sandbox.engine().open_role(sandbox.role) as session:
        return session.read().memory.text


def replace_by_rename(path: Path, data: bytes) -> None:
    aside = path.with_name("aside.tmp")
    aside.write_bytes(data)
    aside.rename(path)


@pytest.fixture
def consolidated(sandbox: Sandbox) -> Sandbox:
    """A memory to which one commit added a third entry."""
    sandbox.findings("agent", THIRD)
    consolidate(sandbox)
    return sandbox


def test_a_stale_writer_with_an_entry_of_its_own_is_healed(consolidated: Sandbox) -> None:
    replace_by_rename(consolidated.memory, BOTH + entry("Theirs"))

    assert read_memory(consolidated) == BOTH + THIRD + entry("Theirs")
    assert consolidated.memory.read_bytes() == BOTH + THIRD + entry("Theirs")


def test_a_store_has_open_commits_only_while_one_is_followed(sandbox: Sandbox) -> None:
    assert not sandbox.engine().has_open_commits(sandbox.store)

    sandbox.findings("agent", THIRD)
    consolidate(sandbox)

    assert sandbox.engine().has_open_commits(sandbox.store)


def test_merging_late_writes_heals_too(consolidated: Sandbox) -> None:
    replace_by_rename(consolidated.memory, BOTH + entry("Theirs"))

    consolidated.engine().merge_late_writes(consolidated.store)

    assert consolidated.memory.read_bytes() == BOTH + THIRD + entry("Theirs")


def test_several_changes_turned_back_are_healed_even_after_hours(sandbox: Sandbox) -> None:
    sandbox.findings("agent", THIRD, entry("Fourth"))
    consolidate(sandbox)
    sandbox.clock_offset = 3600.0

    replace_by_rename(sandbox.memory, BOTH + entry("Theirs"))

    assert read_memory(sandbox) == BOTH + THIRD + entry("Fourth") + entry("Theirs")


def test_an_entry_that_the_user_deletes_stays_deleted(consolidated: Sandbox) -> None:
    consolidated.clock_offset = 60.0
    replace_by_rename(consolidated.memory, AND_THIRD.replace(entry("First"), b""))

    assert read_memory(consolidated) == AND_THIRD.replace(entry("First"), b"")


def test_the_newest_entry_deleted_with_an_edit_stays_deleted_and_is_archived_and_reported(
    consolidated: Sandbox,
) -> None:
    consolidated.clock_offset = 60.0
    old = consolidated.memory.stat().st_mtime + 30
    replace_by_rename(consolidated.memory, BOTH + entry("Mine"))
    os.utime(consolidated.memory, (old, old))

    assert read_memory(consolidated) == BOTH + entry("Mine")
    assert THIRD.strip() in next(consolidated.archive.glob("removed-*.md")).read_bytes()
    assert [r.kind for r in consolidated.engine().collect_notices(consolidated.store).notices] == ["doubtful"]


def test_a_byte_exact_revert_is_accepted_and_reported_once(consolidated: Sandbox) -> None:
    replace_by_rename(consolidated.memory, BOTH)

    assert read_memory(consolidated) == BOTH
    assert read_memory(consolidated) == BOTH
    assert [r.kind for r in consolidated.engine().collect_notices(consolidated.store).notices] == ["reverted"]
    assert THIRD.strip() in next(consolidated.archive.glob("removed-*.md")).read_bytes()


def test_a_block_restored_too_often_is_left_to_the_user(consolidated: Sandbox) -> None:
    for number in range(4):
        replace_by_rename(consolidated.memory, BOTH + b"".join(entry(f"Theirs {n}") for n in range(number + 1)))
        text = read_memory(consolidated)

    assert THIRD not in text
    assert THIRD.strip() in next(consolidated.archive.glob("removed-*.md")).read_bytes()
    assert "restored-too-often" in [r.kind for r in consolidated.engine().collect_notices(consolidated.store).notices]


def test_a_file_emptied_a_moment_ago_is_waited_for(consolidated: Sandbox) -> None:
    consolidated.memory.write_bytes(b"")

    with pytest.raises(BusyError, match="emptied a moment ago"):
        read_memory(consolidated)

    consolidated.clock_offset = 60.0
    assert read_memory(consolidated) == b""
    assert [r.kind for r in consolidated.engine().collect_notices(consolidated.store).notices] == ["emptied"]


def test_a_file_open_for_writing_is_waited_for(consolidated: Sandbox) -> None:
    with consolidated.memory.open("ab"), pytest.raises(BusyError, match="open for writing"):
        read_memory(consolidated)


def test_an_unreadable_file_is_not_changed(consolidated: Sandbox) -> None:
    broken = BOTH + b"\xff\xfe\n"
    replace_by_rename(consolidated.memory, broken)

    assert read_memory(consolidated) == broken
    assert consolidated.memory.read_bytes() == broken


def git(sandbox: Sandbox, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=sandbox.project, check=True, capture_output=True)


def test_a_git_checkout_of_an_older_file_is_respected(sandbox: Sandbox) -> None:
    git(sandbox, "init")
    git(sandbox, "add", "-f", ".rune/echoes/reviewer/MEMORY.md")
    git(sandbox, "commit", "-m", "one")
    sandbox.findings("agent", THIRD, entry("Fourth"))
    consolidate(sandbox)

    git(sandbox, "checkout", "--", ".rune/echoes/reviewer/MEMORY.md")

    assert read_memory(sandbox) == BOTH


def test_a_branch_switch_is_respected_in_both_directions(sandbox: Sandbox) -> None:
    path = ".rune/echoes/reviewer/MEMORY.md"
    git(sandbox, "init")
    git(sandbox, "add", "-f", path)
    git(sandbox, "commit", "-m", "one")
    git(sandbox, "checkout", "-b", "other")
    sandbox.findings("agent", THIRD, entry("Fourth"))
    consolidate(sandbox)
    git(sandbox, "add", "-f", path)
    git(sandbox, "commit", "-m", "two")
    read_memory(sandbox)

    git(sandbox, "checkout", "main")
    there = read_memory(sandbox)
    git(sandbox, "checkout", "other")
    back = read_memory(sandbox)

    assert there == BOTH
    assert back == AND_THIRD + entry("Fourth")


def test_a_commit_without_a_change_does_not_blind_the_healing(sandbox: Sandbox) -> None:
    path = ".rune/echoes/reviewer/MEMORY.md"
    git(sandbox, "init")
    git(sandbox, "add", "-f", path)
    git(sandbox, "commit", "-m", "one")
    sandbox.findings("agent", THIRD, entry("Fourth"))
    consolidate(sandbox)
    git(sandbox, "commit", "--allow-empty", "-m", "two")
    read_memory(sandbox)

    replace_by_rename(sandbox.memory, BOTH + entry("Theirs"))

    assert read_memory(sandbox) == BOTH + THIRD + entry("Fourth") + entry("Theirs")


def test_an_overwrite_that_nothing_looked_at_for_days_is_reported_and_its_text_kept(consolidated: Sandbox) -> None:
    replace_by_rename(consolidated.memory, BOTH + entry("Theirs"))
    consolidated.clock_offset = 3 * 86_400.0
    engine = consolidated.engine()
    assert [notice.kind for notice in engine.collect_notices(consolidated.store).notices] == ["overwritten"]

    engine.apply_retention()
    engine.merge_late_writes(consolidated.store)

    (notice,) = engine.collect_notices(consolidated.store).notices
    assert (notice.kind, "Third" in notice.text) == ("doubtful", True)
    assert consolidated.memory.read_bytes() == BOTH + entry("Theirs")
    archived = b"".join(file.read_bytes() for file in consolidated.archive.glob("*.md"))
    assert THIRD.rstrip() in archived


def test_what_other_programs_only_add_is_not_reported(consolidated: Sandbox) -> None:
    with consolidated.memory.open("ab") as file:
        file.write(entry("Theirs"))

    engine = consolidated.engine()

    assert engine.roles_changed_by_others(consolidated.store) == (consolidated.role,)
    assert engine.collect_notices(consolidated.store).notices == ()
    engine.merge_late_writes(consolidated.store)
    assert engine.roles_changed_by_others(consolidated.store) == ()


def test_a_change_within_the_same_tick_of_the_clock_is_noticed(consolidated: Sandbox) -> None:
    replace_by_rename(consolidated.memory, BOTH)  # without what was just added
    moment = consolidated.memory.stat().st_ctime_ns
    for name in ("states", "records"):
        for file in consolidated.journal.rglob(name):
            os.utime(file, ns=(moment, moment))

    engine = consolidated.engine()

    assert engine.roles_changed_by_others(consolidated.store) == (consolidated.role,)
    assert engine.collect_notices(consolidated.store).notices != ()


def test_a_change_is_noticed_without_an_open_commit(consolidated: Sandbox) -> None:
    consolidated.engine(displaced_hours=0.0).merge_late_writes(consolidated.store)
    assert not consolidated.engine().has_open_commits(consolidated.store)
    replace_by_rename(consolidated.memory, BOTH + entry("Theirs"))

    consolidated.engine().merge_late_writes(consolidated.store)

    assert consolidated.memory.read_bytes() == BOTH + THIRD + entry("Theirs")
