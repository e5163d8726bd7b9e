"""The upstream writers' lock: taken, respected, broken only when stale, never left behind."""

from __future__ import annotations

import os

import pytest

from echod.store import role_lock
from echod.store.errors import Busy
from echod.store.journal.journal import RoleJournal
from tests.store.conftest import Place
from tests.support import in_child


def test_the_lock_is_held_during_the_session_and_empty(place: Place) -> None:
    lock = place.project / "tmp/.rune-echo-lock-reviewer"

    with place.engine().open_role(place.role):
        assert list(lock.iterdir()) == []

    assert not lock.exists()


def test_a_held_lock_defers(place: Place) -> None:
    (place.project / "tmp/.rune-echo-lock-reviewer").mkdir()

    with pytest.raises(Busy, match="Another writer"), place.engine().open_role(place.role):
        pass


def test_a_stale_lock_is_broken(place: Place) -> None:
    lock = place.project / "tmp/.rune-echo-lock-reviewer"
    lock.mkdir()
    old = place.clock() - 31
    os.utime(lock, (old, old))

    with place.engine().open_role(place.role):
        assert lock.exists()


def test_a_stale_lock_with_something_in_it_is_not_broken(place: Place) -> None:
    lock = place.project / "tmp/.rune-echo-lock-reviewer"
    lock.mkdir()
    (lock / "note").write_text("mine")
    os.utime(lock, (0, 0))

    with pytest.raises(Busy, match="not empty"), place.engine().open_role(place.role):
        pass

    assert (lock / "note").read_text() == "mine"


def test_a_lock_taken_over_by_another_is_left_to_it(place: Place) -> None:
    lock = place.project / "tmp/.rune-echo-lock-reviewer"

    with place.engine().open_role(place.role):
        lock.rmdir()
        (place.project / "tmp/keeps-the-inode-in-use").mkdir()
        lock.mkdir()

    assert lock.exists()


def test_without_a_tmp_directory_nobody_locks(place: Place) -> None:
    (place.project / "tmp").rmdir()

    with place.engine().open_role(place.role) as session:
        assert session.read().memory.data is not None


@pytest.mark.parametrize("call", ["mkdir", "note_lock", "rename_new"])
def test_a_kill_while_the_lock_is_made_blocks_nobody(place: Place, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def take_and_die() -> None:
        owner = {"mkdir": os, "note_lock": RoleJournal, "rename_new": role_lock}[call]
        original = getattr(owner, call)

        def dies_after(*arguments: object, **options: object) -> None:
            original(*arguments, **options)
            if call != "mkdir" or ".rune-echo-lock-" in str(arguments[0]):
                os._exit(137)

        monkeypatch.setattr(owner, call, dies_after)
        with place.engine().open_role(place.role):
            pass

    status = in_child(take_and_die)

    with place.engine().open_role(place.role) as session:
        assert session.read().memory.data is not None
    assert status == 137
    assert list((place.project / "tmp").iterdir()) == []
