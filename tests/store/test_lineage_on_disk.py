"""Stale writers are repaired, people are respected."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from echod.store.errors import Busy
from tests.store.conftest import HEADER, Place, consolidation, entry

BOTH = HEADER + entry("First") + entry("Second")
THIRD = entry("Third")
AND_THIRD = BOTH + THIRD


def consolidate(place: Place) -> None:
    with place.engine().open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))


def look(place: Place) -> bytes:
    with place.engine().open_role(place.role) as session:
        return session.read().memory.text


def replace(path: Path, data: bytes) -> None:
    aside = path.with_name("aside.tmp")
    aside.write_bytes(data)
    aside.rename(path)


@pytest.fixture
def grown(place: Place) -> Place:
    """A memory into which one commit brought a third entry."""
    place.findings("agent", THIRD)
    consolidate(place)
    return place


def test_a_stale_writer_with_an_entry_of_its_own_is_healed(grown: Place) -> None:
    replace(grown.memory, BOTH + entry("Theirs"))

    assert look(grown) == BOTH + THIRD + entry("Theirs")
    assert grown.memory.read_bytes() == BOTH + THIRD + entry("Theirs")


def test_a_store_owes_nothing_before_its_first_commit_and_something_while_one_is_followed(place: Place) -> None:
    assert not place.engine().owes(place.store)

    place.findings("agent", THIRD)
    consolidate(place)

    assert place.engine().owes(place.store)


def test_settle_debts_heals_too(grown: Place) -> None:
    replace(grown.memory, BOTH + entry("Theirs"))

    grown.engine().settle_debts(grown.store)

    assert grown.memory.read_bytes() == BOTH + THIRD + entry("Theirs")


def test_several_changes_turned_back_are_healed_even_after_hours(place: Place) -> None:
    place.findings("agent", THIRD, entry("Fourth"))
    consolidate(place)
    place.now = 3600.0

    replace(place.memory, BOTH + entry("Theirs"))

    assert look(place) == BOTH + THIRD + entry("Fourth") + entry("Theirs")


def test_an_entry_that_a_person_deletes_stays_deleted(grown: Place) -> None:
    grown.now = 60.0
    replace(grown.memory, AND_THIRD.replace(entry("First"), b""))

    assert look(grown) == AND_THIRD.replace(entry("First"), b"")


def test_the_newest_entry_deleted_together_with_an_edit_stays_deleted_and_is_kept_and_told(grown: Place) -> None:
    grown.now = 60.0
    old = grown.memory.stat().st_mtime + 30
    replace(grown.memory, BOTH + entry("Mine"))
    os.utime(grown.memory, (old, old))

    assert look(grown) == BOTH + entry("Mine")
    assert THIRD.strip() in next(grown.archive.glob("removed-*.md")).read_bytes()
    assert [r.kind for r in grown.engine().notes(grown.store).reviews] == ["doubtful"]


def test_a_byte_exact_revert_is_respected_and_told_once(grown: Place) -> None:
    replace(grown.memory, BOTH)

    assert look(grown) == BOTH
    assert look(grown) == BOTH
    assert [r.kind for r in grown.engine().notes(grown.store).reviews] == ["reverted"]
    assert THIRD.strip() in next(grown.archive.glob("removed-*.md")).read_bytes()


def test_what_is_put_back_too_often_is_left_to_a_person(grown: Place) -> None:
    for number in range(4):
        replace(grown.memory, BOTH + b"".join(entry(f"Theirs {n}") for n in range(number + 1)))
        text = look(grown)

    assert THIRD not in text
    assert THIRD.strip() in next(grown.archive.glob("removed-*.md")).read_bytes()
    assert "reapplied-often" in [r.kind for r in grown.engine().notes(grown.store).reviews]


def test_a_file_emptied_a_moment_ago_is_waited_for(grown: Place) -> None:
    grown.memory.write_bytes(b"")

    with pytest.raises(Busy, match="emptied a moment ago"):
        look(grown)

    grown.now = 60.0
    assert look(grown) == b""
    assert [r.kind for r in grown.engine().notes(grown.store).reviews] == ["emptied"]


def test_a_file_open_for_writing_is_waited_for(grown: Place) -> None:
    with grown.memory.open("ab"), pytest.raises(Busy, match="open for writing"):
        look(grown)


def test_an_unreadable_file_is_left_alone(grown: Place) -> None:
    broken = BOTH + b"\xff\xfe\n"
    replace(grown.memory, broken)

    assert look(grown) == broken
    assert grown.memory.read_bytes() == broken


def git(place: Place, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=place.project, check=True, capture_output=True)


def test_a_git_checkout_of_an_older_file_is_respected(place: Place) -> None:
    git(place, "init")
    git(place, "add", "-f", ".rune/echoes/reviewer/MEMORY.md")
    git(place, "commit", "-m", "one")
    place.findings("agent", THIRD, entry("Fourth"))
    consolidate(place)

    git(place, "checkout", "--", ".rune/echoes/reviewer/MEMORY.md")

    assert look(place) == BOTH


def test_a_branch_switch_is_respected_in_both_directions(place: Place) -> None:
    path = ".rune/echoes/reviewer/MEMORY.md"
    git(place, "init")
    git(place, "add", "-f", path)
    git(place, "commit", "-m", "one")
    git(place, "checkout", "-b", "other")
    place.findings("agent", THIRD, entry("Fourth"))
    consolidate(place)
    git(place, "add", "-f", path)
    git(place, "commit", "-m", "two")
    look(place)

    git(place, "checkout", "main")
    there = look(place)
    git(place, "checkout", "other")
    back = look(place)

    assert there == BOTH
    assert back == AND_THIRD + entry("Fourth")


def test_a_commit_without_a_change_does_not_blind_the_healing(place: Place) -> None:
    path = ".rune/echoes/reviewer/MEMORY.md"
    git(place, "init")
    git(place, "add", "-f", path)
    git(place, "commit", "-m", "one")
    place.findings("agent", THIRD, entry("Fourth"))
    consolidate(place)
    git(place, "commit", "--allow-empty", "-m", "two")
    look(place)

    replace(place.memory, BOTH + entry("Theirs"))

    assert look(place) == BOTH + THIRD + entry("Fourth") + entry("Theirs")
