"""The spool is bounded, and every event that it does not take is counted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from echod.hooks import spool as written
from echod.inbox.spool import DROP_REASONS, Spool


def put_event(directory: Path, event: str = "stop", data: bytes = b"{}", now_ns: int = 1, pid: int = 7) -> bool:
    return written.write_event(str(directory), event, data, now_ns, pid)


def test_events_are_read_in_the_order_in_which_they_arrived(tmp_path: Path) -> None:
    for now_ns in (5, 3_000_000_000, 4):
        put_event(tmp_path, now_ns=now_ns)

    assert [round(found.spooled_at, 9) for found in Spool(tmp_path).list_events()] == [4e-9, 5e-9, 3.0]


def test_a_spool_with_enough_events_takes_no_more(tmp_path: Path) -> None:
    for number in range(written.MAX_EVENTS):
        (tmp_path / f"{number:020d}-0000002-1.stop.json").touch()

    assert not put_event(tmp_path, now_ns=10**18)
    assert Spool(tmp_path).count_dropped() == {DROP_REASONS[written.FULL]: 1}


def test_a_spool_with_enough_bytes_takes_no_more(tmp_path: Path) -> None:
    for number in range(written.MAX_SPOOL_BYTES // written.MAX_EVENT_BYTES):
        (tmp_path / f"{number:020d}-{written.MAX_EVENT_BYTES:07x}-1.stop.json").touch()

    assert not put_event(tmp_path, now_ns=10**18)
    assert not put_event(tmp_path, now_ns=10**18)
    assert Spool(tmp_path).count_dropped() == {DROP_REASONS[written.FULL]: 2}


def test_many_small_events_are_not_many_bytes(tmp_path: Path) -> None:
    for number in range(500):
        assert put_event(tmp_path, now_ns=number)


def test_every_letter_of_the_count_has_its_reason(tmp_path: Path) -> None:
    for letter in DROP_REASONS:
        written.count_dropped(str(tmp_path), letter)

    assert Spool(tmp_path).count_dropped() == dict.fromkeys(DROP_REASONS.values(), 1)


def test_the_count_itself_is_bounded(tmp_path: Path) -> None:
    (tmp_path / written.DROPPED_FILE).write_text("f" * 70_000)

    written.count_dropped(str(tmp_path), written.FULL)

    assert (tmp_path / written.DROPPED_FILE).stat().st_size == 70_000


def test_a_taken_name_is_never_written_over(tmp_path: Path) -> None:
    others = tmp_path / f".{1:020d}-0000002-7.stop.json.part"
    others.touch()

    assert not put_event(tmp_path)
    assert others.exists()
    assert Spool(tmp_path).count_dropped() == {DROP_REASONS[written.NOT_WRITTEN]: 1}


def test_the_file_of_a_killed_hook_is_removed_after_an_hour_and_never_read(tmp_path: Path) -> None:
    old, young = (tmp_path / f".{name}.part" for name in ("old", "young"))
    old.touch()
    young.touch()
    os.utime(old, (0, 0))
    spool = Spool(tmp_path)

    assert spool.list_events() == ()
    spool.remove_unfinished(young.stat().st_mtime + 10)

    assert not old.exists()
    assert young.exists()


def test_a_missing_spool_is_empty(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "none")

    assert spool.list_events() == ()
    assert spool.count_dropped() == {}
    assert spool.remove(["x"]) == frozenset()
    spool.remove_unfinished(0.0)


@pytest.mark.parametrize("text", ["", "[]", "{", '"x"', "[" * 100_000], ids=["empty", "list", "torn", "text", "deep"])
def test_an_event_that_is_not_an_object_is_refused(tmp_path: Path, text: str) -> None:
    put_event(tmp_path, data=text.encode())
    spool = Spool(tmp_path)

    assert spool.read(spool.list_events()[0]) is None


def test_only_one_of_two_takers_gets_an_event(tmp_path: Path) -> None:
    put_event(tmp_path)
    one, other = Spool(tmp_path), Spool(tmp_path)
    name = one.list_events()[0].name

    assert [one.remove([name]), other.remove([name])] == [frozenset({name}), frozenset()]
