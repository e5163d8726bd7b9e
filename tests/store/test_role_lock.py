"""The upstream writers' lock: taken, respected, broken only when stale, never left behind."""

from __future__ import annotations

import os

import pytest

from echod.store import role
from echod.store.errors import BusyError
from echod.store.journal.journal import RoleJournal
from tests.store.conftest import Sandbox
from tests.support import run_in_child


def test_the_lock_is_held_during_the_session_and_empty(sandbox: Sandbox) -> None:
    lock = sandbox.project / "tmp/.rune-echo-lock-reviewer"

    with sandbox.engine().open_role(sandbox.role):
        assert list(lock.iterdir()) == []

    assert not lock.exists()


def test_a_held_lock_defers(sandbox: Sandbox) -> None:
    (sandbox.project / "tmp/.rune-echo-lock-reviewer").mkdir()

    with pytest.raises(BusyError, match="Another writer"), sandbox.engine().open_role(sandbox.role):
        pass


def test_a_stale_lock_is_broken(sandbox: Sandbox) -> None:
    lock = sandbox.project / "tmp/.rune-echo-lock-reviewer"
    lock.mkdir()
    old = sandbox.clock() - 31
    os.utime(lock, (old, old))

    with sandbox.engine().open_role(sandbox.role):
        assert lock.exists()


def test_a_stale_lock_with_something_in_it_is_not_broken(sandbox: Sandbox) -> None:
    lock = sandbox.project / "tmp/.rune-echo-lock-reviewer"
    lock.mkdir()
    (lock / "note").write_text("mine")
    os.utime(lock, (0, 0))

    with pytest.raises(BusyError, match="not empty"), sandbox.engine().open_role(sandbox.role):
        pass

    assert (lock / "note").read_text() == "mine"


def test_a_lock_taken_over_by_another_writer_is_not_released(sandbox: Sandbox) -> None:
    lock = sandbox.project / "tmp/.rune-echo-lock-reviewer"

    with sandbox.engine().open_role(sandbox.role):
        lock.rmdir()
        (sandbox.project / "tmp/keeps-the-inode-in-use").mkdir()
        lock.mkdir()

    assert lock.exists()


def test_without_a_tmp_directory_there_is_no_lock(sandbox: Sandbox) -> None:
    (sandbox.project / "tmp").rmdir()

    with sandbox.engine().open_role(sandbox.role) as session:
        assert session.read().memory.data is not None


@pytest.mark.parametrize("call", ["mkdir", "record_lock", "rename_noreplace"])
def test_a_kill_while_the_lock_is_created_blocks_no_writer(
    sandbox: Sandbox, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_and_die() -> None:
        owner = {"mkdir": os, "record_lock": RoleJournal, "rename_noreplace": role}[call]
        original = getattr(owner, call)

        def dies_after(*arguments: object, **options: object) -> None:
            original(*arguments, **options)
            if call != "mkdir" or ".rune-echo-lock-" in str(arguments[0]):
                os._exit(137)

        monkeypatch.setattr(owner, call, dies_after)
        with sandbox.engine().open_role(sandbox.role):
            pass

    status = run_in_child(take_and_die)

    with sandbox.engine().open_role(sandbox.role) as session:
        assert session.read().memory.data is not None
    assert status == 137
    assert list((sandbox.project / "tmp").iterdir()) == []


@pytest.mark.parametrize("age", [31.0, 3_600.0, -3_600.0])
def test_a_lock_that_a_killed_process_moved_aside_is_cleaned_by_the_next(sandbox: Sandbox, age: float) -> None:
    tmp = sandbox.project / "tmp"
    with sandbox.engine().open_role(sandbox.role):
        pass
    journal_id = next(sandbox.journal.rglob("journal-id")).read_text()
    for path in (tmp / f".rune-echo-lock-reviewer.{journal_id}", tmp / ".rune-echo-lock-reviewer"):
        path.mkdir()
        os.utime(path, (sandbox.clock() - age, sandbox.clock() - age))

    with sandbox.engine().open_role(sandbox.role):
        assert [path.name for path in tmp.iterdir()] == [".rune-echo-lock-reviewer"]

    assert list(tmp.iterdir()) == []


def test_a_fresh_lock_that_was_moved_aside_gets_its_name_back(sandbox: Sandbox) -> None:
    tmp = sandbox.project / "tmp"
    with sandbox.engine().open_role(sandbox.role):
        pass
    journal_id = next(sandbox.journal.rglob("journal-id")).read_text()
    (tmp / f".rune-echo-lock-reviewer.{journal_id}").mkdir()

    with pytest.raises(BusyError, match="Another writer"), sandbox.engine().open_role(sandbox.role):
        pass

    assert [path.name for path in tmp.iterdir()] == [".rune-echo-lock-reviewer"]
