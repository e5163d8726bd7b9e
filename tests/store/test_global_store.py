"""The global store is a store: the same engine, with the lock and the signal of all programs that write there."""

from __future__ import annotations

import os
import time
from pathlib import Path, PurePosixPath

import pytest

from echod.store.changes import ChangeSet, ConsumeFindings, Origin, Write
from echod.store.create import create_global_role
from echod.store.engine import Engine, RoleSession
from echod.store.errors import BusyError, EngineLimits, StoreError
from echod.store.layout import DIRTY_MARKER, GLOBAL_LOCK, Role, global_role, global_store, packs_store, store_at
from tests.store.conftest import entry

TEXT = b"# Pack\n\n" + entry("First", layer="Etched")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "claude"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path / "journal", limits=EngineLimits(), clock=time.time)


@pytest.fixture
def pack(home: Path) -> Role:
    role = Role(packs_store(home), "fastapi")
    create_global_role(role)
    return role


def write(session: RoleSession, job: int, text: bytes) -> None:
    path = PurePosixPath(session.role.name) / "MEMORY.md"
    before = session.read().memory.digest
    session.commit(job, ChangeSet("pack", session.role.name, "", (Write(path, before, text),), origin=Origin.USER))


def consume_memory(session: RoleSession, job: int) -> None:
    found = session.read().memory
    path = PurePosixPath(session.role.name) / "MEMORY.md"
    assert found.digest is not None
    consume = ConsumeFindings(path, found.digest, path.with_name("archive") / "taken.md", found.text)
    session.commit(job, ChangeSet("pack", session.role.name, "", consumes=(consume,), origin=Origin.USER))


def test_a_pack_and_the_global_memory_are_written_and_undone_like_any_other(
    home: Path, engine: Engine, pack: Role
) -> None:
    for number, role in enumerate((pack, global_role(home)), 1):
        with engine.open_role(role) as session:
            write(session, number, TEXT)
        assert role.memory.read_bytes() == TEXT

        engine.undo(number, by_job=number + 10)

        assert not role.memory.exists()


def test_the_journal_knows_the_very_same_stores(home: Path, engine: Engine, pack: Role) -> None:
    for number, role in enumerate((pack, global_role(home)), 1):
        with engine.open_role(role) as session:
            write(session, number, TEXT)

    assert {done.store for done in engine.history()} == {packs_store(home), global_store(home)}
    assert store_at(packs_store(home).root) == packs_store(home)


@pytest.mark.parametrize("which", ["a pack", "a pack called archive", "the global memory"])
def test_the_mtimes_that_echod_left_are_known_for_every_role(home: Path, engine: Engine, which: str) -> None:
    """One role's memory file has no directory of its own, and another role is named like an archive directory."""
    stores = {"a pack": ("fastapi", packs_store), "a pack called archive": ("archive", packs_store)}
    name, store_of = stores.get(which, ("", global_store))
    role = Role(store_of(home), name)
    create_global_role(role)
    path = PurePosixPath(name)
    writes = (Write(path / "MEMORY.md", None, TEXT), Write(path / "archive/MEMORY-2026-11-28.md", None, TEXT))

    with engine.open_role(role) as session:
        session.read()
        session.commit(1, ChangeSet("pack", name, "", writes, origin=Origin.USER))

    (made,) = engine.memory_commits(role)
    assert (made.info.job, made.before.blocks, made.after.render()) == (1, (), TEXT)
    assert engine.own_mtimes(role.store) == {role.memory: role.memory.stat().st_mtime_ns}


def test_the_lock_of_the_other_writers_is_held_and_respected(home: Path, engine: Engine, pack: Role) -> None:
    lock = global_store(home).root / GLOBAL_LOCK
    with engine.open_role(pack):
        assert list(lock.iterdir()) == []
        with pytest.raises(BusyError, match="Another writer"), engine.open_role(global_role(home)):
            pass
    assert not lock.exists()

    lock.mkdir()
    os.utime(lock, (old := time.time() - 31, old))
    with engine.open_role(pack):
        assert lock.exists()


def test_the_search_signal_is_touched_for_new_and_for_removed_packs(home: Path, engine: Engine, pack: Role) -> None:
    signal = global_store(home).root / DIRTY_MARKER
    with engine.open_role(pack) as session:
        write(session, 1, TEXT)
        assert signal.exists()
        signal.unlink()

        consume_memory(session, 2)

    assert signal.exists()


def test_a_file_that_echod_removed_does_not_count_as_a_deletion_by_the_user(engine: Engine, pack: Role) -> None:
    with engine.open_role(pack) as session:
        write(session, 1, TEXT)
        consume_memory(session, 2)

    with engine.open_role(pack) as session:
        assert session.read().memory.data is None

    assert engine.collect_notices(pack.store).notices == ()
    engine.undo(2, by_job=3)
    assert pack.memory.read_bytes() == TEXT


def test_no_symlink_is_followed_below_the_home(home: Path, engine: Engine, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    home.mkdir()
    (home / "echoes").symlink_to(outside)

    with pytest.raises(StoreError, match=r"symbolic link|not a directory"):
        create_global_role(Role(packs_store(home), "fastapi"))

    assert list(outside.iterdir()) == []
