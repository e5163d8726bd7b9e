"""A job that the user asked for is stronger than the rule that restores young entries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

import pytest

from echod.store.changes import Append, ChangeSet, CommitResult, Origin, Write
from echod.store.engine import RoleView
from tests.store.conftest import HEADER, Sandbox, entry, plan_consolidation

BOTH = HEADER + entry("First") + entry("Second")
RAISED = entry("Third", layer="Etched")


def consolidate(sandbox: Sandbox, *titles: str, job: int = 1) -> None:
    sandbox.findings("agent", *map(entry, titles))
    with sandbox.engine().open_role(sandbox.role) as session:
        assert isinstance(session.commit(job, plan_consolidation(session.read())), CommitResult)


def by_user(sandbox: Sandbox, job: int, change: Callable[[bytes], bytes], archived: bytes = b"") -> None:
    """Change the memory by a job of the user's."""

    def plan(view: RoleView) -> ChangeSet:
        write = Write(PurePosixPath("reviewer/MEMORY.md"), view.memory.digest, change(view.memory.text))
        appends = (Append(PurePosixPath("reviewer/archive/removed-2026.md"), archived),) if archived else ()
        return ChangeSet("manual", "reviewer", "asked for", (write,), appends, origin=Origin.USER)

    with sandbox.engine().open_role(sandbox.role) as session:
        assert isinstance(session.commit(job, plan(session.read())), CommitResult)


def raise_third(sandbox: Sandbox) -> None:
    by_user(sandbox, 2, lambda memory: memory.replace(entry("Third"), RAISED), entry("Third"))


def test_raised_and_taken_out_at_once_it_stays_out(sandbox: Sandbox) -> None:
    consolidate(sandbox, "Third")
    by_user(
        sandbox, 2, lambda memory: memory.replace(entry("Third"), entry("Third", "Learned better.")), entry("Third")
    )
    (sandbox.archive / "removed-2026.md").unlink()
    archived = entry("Third", "Learned better.")
    by_user(sandbox, 3, lambda memory: memory.replace(archived, b""), archived)

    consolidate(sandbox, "Fourth", job=4)

    assert sandbox.memory.read_bytes() == BOTH + entry("Fourth")


@pytest.mark.parametrize("raised", [False, True])
def test_reset_and_undone_at_once_the_bytes_are_the_same(sandbox: Sandbox, raised: bool) -> None:
    consolidate(sandbox, "Third")
    if raised:
        raise_third(sandbox)
    before = sandbox.memory.read_bytes()
    by_user(sandbox, 3, lambda _: HEADER, before)

    sandbox.engine().undo(3, by_job=4)

    assert sandbox.memory.read_bytes() == before


def test_an_edited_young_entry_that_is_overwritten_comes_back_as_edited(sandbox: Sandbox) -> None:
    consolidate(sandbox, "Third")
    raise_third(sandbox)

    sandbox.memory.write_bytes(BOTH + entry("By a stale writer"))
    sandbox.engine().merge_late_writes(sandbox.store)

    memory = sandbox.memory.read_bytes()
    assert (memory.count(RAISED.rstrip()), memory.count(b"Third")) == (1, 1)
    assert b"By a stale writer" in memory


def test_the_rule_still_restores_what_no_job_removed(sandbox: Sandbox) -> None:
    consolidate(sandbox, "Third")
    by_user(sandbox, 2, lambda memory: memory.replace(entry("First"), b""), entry("First"))

    sandbox.memory.write_bytes(HEADER + entry("Second") + entry("By a stale writer"))
    sandbox.engine().merge_late_writes(sandbox.store)

    memory = sandbox.memory.read_bytes()
    assert memory.count(b"Third") == 1
    assert memory.count(b"First") == 0
