"""After a crash, what others did to the files in between decides, not an inode number."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from echod.store.commit.context import CommitStep
from tests.store.conftest import HEADER, Sandbox, die_at, entry, plan_consolidation
from tests.support import run_in_child

BOTH = HEADER + entry("First") + entry("Second")
AFTER = BOTH + entry("Third")


def consolidate(sandbox: Sandbox, trace: Callable[[CommitStep], None] | None = None) -> None:
    engine = sandbox.engine(trace) if trace else sandbox.engine()
    with engine.open_role(sandbox.role) as session:
        view = session.read()
        changes = plan_consolidation(view)
        if all(found.text in view.memory.text for found in view.findings):
            changes = changes._replace(writes=())  # a repeated finding adds nothing
        if view.findings:
            session.commit(1, changes)


def kill_at(sandbox: Sandbox, step: CommitStep) -> None:
    sandbox.findings("agent", entry("Third"))
    assert run_in_child(lambda: consolidate(sandbox, die_at(step))) == 137


def replace_memory(sandbox: Sandbox, data: bytes) -> None:
    aside = sandbox.memory.with_name(".aside")
    aside.write_bytes(data)
    aside.rename(sandbox.memory)


def waiting(sandbox: Sandbox) -> list[str]:
    return sorted(path.name for path in sandbox.role.path.glob("*-findings.md"))


def recover(sandbox: Sandbox) -> None:
    assert sandbox.engine().recover([sandbox.store]).deferred == ()


@pytest.mark.parametrize("edit", ["append", "rename"])
def test_a_removed_stage_is_not_taken_for_a_published_one(sandbox: Sandbox, edit: str) -> None:
    kill_at(sandbox, CommitStep.INTENT_WRITTEN)
    shutil.rmtree(sandbox.private)
    edited = BOTH + entry("By hand")
    if edit == "append":
        sandbox.memory.write_bytes(edited)
    else:
        replace_memory(sandbox, edited)

    recover(sandbox)

    assert sandbox.memory.read_bytes() == edited
    assert waiting(sandbox) == ["agent-findings.md"]
    consolidate(sandbox)
    assert sandbox.memory.read_bytes() == edited + entry("Third")


def test_an_inode_number_that_is_used_again_proves_nothing(sandbox: Sandbox) -> None:
    kill_at(sandbox, CommitStep.INTENT_WRITTEN)
    (stage,) = sandbox.private.glob(".MEMORY.md.*")
    # The same inode with another content, as if its number had been given to another program's file.
    stage.write_bytes(BOTH + entry("By hand"))
    stage.rename(sandbox.memory)

    recover(sandbox)

    assert sandbox.memory.read_bytes() == BOTH + entry("By hand")
    assert waiting(sandbox) == ["agent-findings.md"]


def test_a_removed_stage_is_written_again_if_nothing_else_changed(sandbox: Sandbox) -> None:
    kill_at(sandbox, CommitStep.INTENT_WRITTEN)
    shutil.rmtree(sandbox.private)

    recover(sandbox)

    assert sandbox.memory.read_bytes() == AFTER
    assert waiting(sandbox) == []


def test_a_copy_of_the_stage_with_another_inode_is_not_a_displaced_file(sandbox: Sandbox) -> None:
    kill_at(sandbox, CommitStep.INTENT_WRITTEN)
    (stage,) = sandbox.private.glob(".MEMORY.md.*")
    data = stage.read_bytes()
    keeper = sandbox.private / "keeper"
    stage.rename(keeper)
    stage.write_bytes(data)

    recover(sandbox)

    assert sandbox.memory.read_bytes() == AFTER


@pytest.mark.parametrize("step", [CommitStep.EXCHANGED, CommitStep.PUBLISHED])
def test_a_published_file_is_recognized_without_the_displaced_one(sandbox: Sandbox, step: CommitStep) -> None:
    kill_at(sandbox, step)
    shutil.rmtree(sandbox.private)
    with sandbox.memory.open("ab") as file:
        file.write(entry("Later"))

    recover(sandbox)

    assert sandbox.memory.read_bytes() == AFTER + entry("Later")
    assert waiting(sandbox) == []


@pytest.mark.parametrize("step", [CommitStep.EXCHANGED, CommitStep.PUBLISHED, CommitStep.CLAIMED])
@pytest.mark.parametrize("cleaned", [False, True])
def test_findings_whose_entries_are_not_seen_get_their_names_back(
    sandbox: Sandbox, step: CommitStep, cleaned: bool
) -> None:
    kill_at(sandbox, step)
    replace_memory(sandbox, BOTH + entry("Another version"))
    if cleaned:
        shutil.rmtree(sandbox.private)

    recover(sandbox)
    consolidate(sandbox)

    assert sandbox.memory.read_bytes().count(b"Third") == 1
    assert b"Another version" in sandbox.memory.read_bytes()
    assert waiting(sandbox) == []


def test_findings_given_back_do_not_replace_newer_ones(sandbox: Sandbox) -> None:
    kill_at(sandbox, CommitStep.CLAIMED)
    replace_memory(sandbox, BOTH + entry("Another version"))
    sandbox.findings("agent", entry("Newer"))

    recover(sandbox)

    assert (sandbox.role.path / "agent-findings.md").read_bytes() == entry("Newer")
    assert len(waiting(sandbox)) == 2


def test_an_unreadable_file_is_not_replaced_by_a_recovery(sandbox: Sandbox) -> None:
    kill_at(sandbox, CommitStep.INTENT_WRITTEN)
    conflict = BOTH + b"<<<<<<< ours\nOne.\n=======\nOther.\n>>>>>>> theirs\n"
    replace_memory(sandbox, conflict)

    recover(sandbox)

    assert sandbox.memory.read_bytes() == conflict
    assert waiting(sandbox) == ["agent-findings.md"]


def test_a_deleted_memory_is_not_brought_back_by_a_recovery(sandbox: Sandbox) -> None:
    kill_at(sandbox, CommitStep.INTENT_WRITTEN)
    sandbox.memory.unlink()

    recover(sandbox)

    assert not sandbox.memory.exists()
    assert waiting(sandbox) == ["agent-findings.md"]


def test_the_findings_of_a_removed_store_do_not_count_as_consumed(sandbox: Sandbox) -> None:
    kill_at(sandbox, CommitStep.INTENT_WRITTEN)
    kept = sandbox.project.parent / "kept"
    sandbox.role.path.rename(kept)
    sandbox.clock_offset = 25 * 3_600.0
    sandbox.engine().merge_late_writes(sandbox.store)

    kept.rename(sandbox.role.path)

    with sandbox.engine().open_role(sandbox.role) as session:
        assert session.read().consumed_keys == frozenset()
    consolidate(sandbox)
    assert sandbox.memory.read_bytes() == AFTER


def test_a_lost_private_directory_loses_no_later_commit(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    consolidate(sandbox)
    shutil.rmtree(sandbox.private)

    sandbox.findings("agent", entry("Fourth"))
    consolidate(sandbox)
    sandbox.engine(displaced_hours=0.0).merge_late_writes(sandbox.store)

    assert sandbox.memory.read_bytes() == AFTER + entry("Fourth")
    assert not sandbox.engine().has_open_commits(sandbox.store)
