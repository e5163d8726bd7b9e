"""A first prune that removes much waits for the user, whoever runs it, unless the user names the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.life.files import MEMORY_HEADER, crowded_memory, learning_text
from tests.support import Home, make_project

ROLE = "reviewer"


@pytest.fixture
def memory(home: Home, tmp_path: Path) -> Path:
    root = make_project(tmp_path / "p", ROLE)
    file = root / ".rune/echoes" / ROLE / "MEMORY.md"
    file.write_text(crowded_memory())
    home.run("add", root)
    return file


def project(memory: Path) -> Path:
    return memory.parents[3]


def test_run_once_holds_it_and_lists_it_for_review(home: Home, memory: Path) -> None:
    before = memory.read_bytes()

    said = " ".join(home.run("run", "--once", project(memory)).split())

    assert memory.read_bytes() == before
    assert "the first prune of this file would remove" in said
    assert [item["kind"] for item in home.json("review", project(memory))["items"]].count("first-prune") == 1
    home.run("run", "--once", "--now", project(memory))
    assert len(memory.read_text().splitlines()) <= 150


def test_now_requires_a_project(home: Home, memory: Path) -> None:
    for arguments in (["run", "--once", "--now"], ["run", "--now", project(memory)]):
        result = home.echod(*arguments)
        assert (result.returncode, "--now requires" in result.stderr) == (2, True)


def test_now_is_about_this_run_only(home: Home, memory: Path) -> None:
    memory.write_text(MEMORY_HEADER + learning_text("short"))
    home.run("run", "--once", "--now", project(memory))
    memory.write_text(crowded_memory())

    home.run("run", "--once", project(memory))

    assert memory.read_text() == crowded_memory()


def test_an_inscribed_entry_is_enough_to_hold_it(home: Home, memory: Path) -> None:
    memory.write_text(MEMORY_HEADER + "".join(learning_text(f"learning {n}") for n in range(34)))
    before = memory.read_bytes()

    said = " ".join(home.run("add", project(memory)).split())
    home.run("run", "--once", project(memory))

    assert "inscribed" in said
    assert memory.read_bytes() == before


def test_an_accepted_review_item_releases_it(home: Home, memory: Path) -> None:
    home.run("run", "--once", project(memory))
    (item,) = [one for one in home.json("review", project(memory))["items"] if one["kind"] == "first-prune"]

    home.run("review", "accept", item["id"])
    home.run("run", "--once", project(memory))

    assert len(memory.read_text().splitlines()) <= 150
