"""File systems with fewer abilities: probed, never torn, and written only when no other program writes."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from echod.store import fs
from echod.store.changes import CommitConflict
from echod.store.commit.context import CommitStep
from echod.store.errors import BusyError
from echod.store.fs import Capabilities, Dir, OpenWriters, RenameUnsupportedError, probe
from tests.store.conftest import HEADER, Sandbox, die_at, entry, plan_consolidation
from tests.support import run_in_child

AFTER = HEADER + entry("First") + entry("Second") + entry("Third")


def _raise_unsupported(_source: Dir, _name: str, _target: Dir, _new: str, _flags: int) -> None:
    raise RenameUnsupportedError("not here")


@pytest.fixture
def no_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs, "_rename", _raise_unsupported)


@pytest.fixture
def no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs, "_take_lease", lambda _fd: OpenWriters.UNKNOWN)


def consolidate(sandbox: Sandbox, at: CommitStep | None = None) -> None:
    engine = sandbox.engine(die_at(at)) if at else sandbox.engine()
    with engine.open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))


def settle(sandbox: Sandbox) -> None:
    sandbox.clock_offset = 10.0


def test_capabilities_are_probed_and_nothing_is_left(tmp_path: Path) -> None:
    found = probe(tmp_path)

    assert found.hard_link
    assert list(tmp_path.iterdir()) == []


def test_missing_abilities_are_seen(tmp_path: Path, no_exchange: None, no_lease: None) -> None:
    assert probe(tmp_path) == Capabilities(exchange=False, lease=False, hard_link=True)
    assert not probe(tmp_path).full


def test_without_exchange_a_file_just_written_is_waited_for(sandbox: Sandbox, no_exchange: None) -> None:
    sandbox.findings("agent", entry("Third"))

    with pytest.raises(BusyError, match="cannot exchange"):
        consolidate(sandbox)

    settle(sandbox)
    consolidate(sandbox)
    assert sandbox.memory.read_bytes() == AFTER


def test_without_leases_a_file_just_written_is_waited_for(sandbox: Sandbox, no_lease: None) -> None:
    with pytest.raises(BusyError, match="less than 2 s ago"):
        consolidate(sandbox)


@pytest.mark.parametrize(
    "step",
    [
        CommitStep.INTENT_WRITTEN,
        CommitStep.LEASED,
        CommitStep.LINKED,
        CommitStep.EXCHANGED,
        CommitStep.RELEASED,
        CommitStep.CLAIMED,
    ],
)
def test_without_exchange_a_kill_is_survived(
    sandbox: Sandbox, no_exchange: None, no_lease: None, step: CommitStep
) -> None:
    sandbox.findings("agent", entry("Third"))
    settle(sandbox)

    status = run_in_child(lambda: consolidate(sandbox, step))
    sandbox.engine().recover([sandbox.store])

    assert status == 137
    assert sandbox.memory.read_bytes() == AFTER
    assert not list(sandbox.role.path.glob("*-findings.md"))
    assert not list(sandbox.role.path.glob(".*.old"))


def test_without_exchange_an_open_writer_stops_the_commit(sandbox: Sandbox, no_exchange: None) -> None:
    sandbox.findings("agent", entry("Third"))
    settle(sandbox)
    before = sandbox.memory.read_bytes()

    with sandbox.engine().open_role(sandbox.role) as session:
        view = session.read()
        with sandbox.memory.open("ab"):
            replans = [session.commit(1, plan_consolidation(view)) for _ in range(3)]
            with pytest.raises(BusyError):
                session.commit(1, plan_consolidation(view))

    assert replans == [CommitConflict("reviewer/MEMORY.md")] * 3
    assert sandbox.memory.read_bytes() == before
    assert sandbox.hidden_names() == []


@pytest.fixture
def bind_mount(tmp_path: Path) -> Iterator[Path]:
    """A FUSE mount, which has no exchange."""
    if shutil.which("bindfs") is None:
        pytest.skip("bindfs is not installed")
    below, mount = tmp_path / "below", tmp_path / "mount"
    below.mkdir()
    mount.mkdir()
    if subprocess.run(["bindfs", str(below), str(mount)], capture_output=True).returncode:
        pytest.skip("FUSE cannot be mounted here")
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


def test_a_fuse_mount_is_recognized(bind_mount: Path) -> None:
    assert not probe(bind_mount).full


def test_on_macos_a_rename_has_the_numbers_of_its_header(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`sys/stdio.h` there: RENAME_SWAP is 2 and RENAME_EXCL is 4. The code is loaded as on macOS, with a library that records."""
    spec = importlib.util.spec_from_file_location("fs_of_macos", fs.__file__)
    assert spec is not None
    assert spec.loader is not None
    macos = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, macos)
    monkeypatch.setattr(sys, "platform", "darwin")
    spec.loader.exec_module(macos)
    calls: list[tuple[object, ...]] = []

    class Library:
        @staticmethod
        def renameatx_np(*arguments: object) -> int:
            calls.append(arguments)
            return 0

    monkeypatch.setattr(macos, "_libc", Library)
    one, two = Dir(3, tmp_path), Dir(4, tmp_path)
    macos.exchange(one, "a", two, "b")
    macos.rename_noreplace(one, "a", two, "b")

    assert calls == [(3, b"a", 4, b"b", 2), (3, b"a", 4, b"b", 4)]
