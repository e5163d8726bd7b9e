"""The journal of a store can be deleted as a whole, even after an interrupted deletion."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from echod.store.journal.retention import delete_journal, journal_bytes
from tests.store.conftest import Sandbox, entry, plan_consolidation
from tests.support import run_in_child


@pytest.fixture
def committed(sandbox: Sandbox) -> Sandbox:
    """A project with a commit in its journal."""
    commit_findings(sandbox)
    return sandbox


def commit_findings(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    with sandbox.engine().open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))


def kill_during_deletion(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete the files one by one, and end the process after the first."""

    def half(path: Path) -> None:
        next(found for found in Path(path).rglob("*") if found.is_file()).unlink()
        os._exit(137)

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", half)
        assert run_in_child(lambda: delete_journal(sandbox.journal, sandbox.store)) == 137


def journal_siblings(sandbox: Sandbox) -> set[str]:
    """Return the names beside the journal, except the project."""
    return {path.name for path in sandbox.journal.parent.iterdir()} - {sandbox.project.name}


@pytest.mark.parametrize("used_since", [False, True], ids=["at once", "after the store was used again"])
def test_leftovers_of_an_interrupted_deletion_do_not_stop_a_later_one(
    committed: Sandbox, monkeypatch: pytest.MonkeyPatch, used_since: bool
) -> None:
    kill_during_deletion(committed, monkeypatch)
    assert journal_bytes(committed.journal, committed.store) == 0
    if used_since:
        commit_findings(committed)

    delete_journal(committed.journal, committed.store)

    assert committed.engine().history([committed.store]) == ()
    assert journal_siblings(committed) == {"journal"}
    assert list(committed.journal.iterdir()) == []


def test_leftovers_are_removed_by_retention(committed: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    kill_during_deletion(committed, monkeypatch)
    assert len(journal_siblings(committed)) == 2

    committed.engine().apply_retention()

    assert journal_siblings(committed) == {"journal"}
