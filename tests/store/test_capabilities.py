"""File systems that can do less: found out, still never torn, and written only when nobody writes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from echod.store import fs
from echod.store.capabilities import Capabilities, probe
from echod.store.commit.commit import Overtaken
from echod.store.commit.steps import Step
from echod.store.errors import Busy
from echod.store.fs import Dir, UnsupportedError, Writers
from tests.store.conftest import HEADER, Place, consolidation, die_at, entry
from tests.support import in_child

AFTER = HEADER + entry("First") + entry("Second") + entry("Third")


def _cannot(_source: Dir, _name: str, _target: Dir, _new: str, _flags: int) -> None:
    raise UnsupportedError("not here")


@pytest.fixture
def no_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs, "_rename", _cannot)


@pytest.fixture
def no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs, "_take", lambda _fd: Writers.UNKNOWN)


def consolidate(place: Place, at: Step | None = None) -> None:
    engine = place.engine(die_at(at)) if at else place.engine()
    with engine.open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))


def calm(place: Place) -> None:
    place.now = 10.0


def test_what_works_is_found_by_trying_and_leaves_nothing(tmp_path: Path) -> None:
    found = probe(tmp_path)

    assert found.hard_link
    assert list(tmp_path.iterdir()) == []


def test_missing_abilities_are_seen(tmp_path: Path, no_exchange: None, no_lease: None) -> None:
    assert probe(tmp_path) == Capabilities(exchange=False, lease=False, hard_link=True)
    assert not probe(tmp_path).full


def test_without_exchange_a_file_just_written_is_waited_for(place: Place, no_exchange: None) -> None:
    place.findings("agent", entry("Third"))

    with pytest.raises(Busy, match="cannot exchange"):
        consolidate(place)

    calm(place)
    consolidate(place)
    assert place.memory.read_bytes() == AFTER


def test_without_leases_a_file_just_written_is_waited_for(place: Place, no_lease: None) -> None:
    with pytest.raises(Busy, match="less than 2 s ago"):
        consolidate(place)


@pytest.mark.parametrize("step", [Step.INTENDED, Step.LEASED, Step.LINKED, Step.EXCHANGED, Step.RELEASED, Step.CLAIMED])
def test_without_exchange_a_kill_is_survived(place: Place, no_exchange: None, no_lease: None, step: Step) -> None:
    place.findings("agent", entry("Third"))
    calm(place)

    status = in_child(lambda: consolidate(place, step))
    place.engine().recover([place.store])

    assert status == 137
    assert place.memory.read_bytes() == AFTER
    assert not list(place.role.path.glob("*-findings.md"))
    assert not list(place.role.path.glob(".*.old"))


def test_without_exchange_an_open_writer_stops_the_commit(place: Place, no_exchange: None) -> None:
    place.findings("agent", entry("Third"))
    calm(place)
    before = place.memory.read_bytes()

    with place.engine().open_role(place.role) as session:
        view = session.read()
        with place.memory.open("ab"):
            replans = [session.commit(1, consolidation(view)) for _ in range(3)]
            with pytest.raises(Busy):
                session.commit(1, consolidation(view))

    assert replans == [Overtaken("reviewer/MEMORY.md")] * 3
    assert place.memory.read_bytes() == before
    assert place.hidden() == []


@pytest.fixture
def bind(tmp_path: Path) -> Iterator[Path]:
    """A FUSE mount, which knows no exchange."""
    if shutil.which("bindfs") is None:
        pytest.skip("bindfs is not installed")
    below, mount = tmp_path / "below", tmp_path / "mount"
    below.mkdir()
    mount.mkdir()
    if subprocess.run(["bindfs", str(below), str(mount)], capture_output=True).returncode:
        pytest.skip("FUSE cannot be mounted here")
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


def test_a_fuse_mount_is_seen_for_what_it_is(bind: Path) -> None:
    assert not probe(bind).full
