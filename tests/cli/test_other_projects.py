"""A command that changes something takes no other project's, and a project that was moved keeps what was recorded."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import structlog
from click.testing import CliRunner

from echod.cli.root import app
from echod.errors import EchodError
from tests.support import make_project

FINDING = "### [2026-03-02] Pattern: {0}\n- **layer**: inscribed\n- {0}, always.\n"


class Place(NamedTuple):
    """A home directory in this process's environment."""

    home: Path

    def run(self, *words: object) -> str:
        code, text = self.try_run(*words)
        assert code == 0, text
        return text

    def try_run(self, *words: object) -> tuple[int, str]:
        with contextlib.redirect_stderr(io.StringIO()):
            result = CliRunner().invoke(app, [str(word) for word in words], prog_name="echod")
        if isinstance(result.exception, EchodError):
            return result.exception.exit_code, str(result.exception)
        assert isinstance(result.exception, SystemExit | None), result.exception
        return result.exit_code, result.output


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    for name in [name for name in os.environ if name.startswith(("ECHOD_", "CLAUDE_", "XDG_"))]:
        monkeypatch.delenv(name)
    home = (tmp_path / "home").resolve()
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ECHOD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("ECHOD_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("ECHOD_QUIET_SECONDS", "0")
    monkeypatch.chdir(home)
    yield Place(home)
    structlog.reset_defaults()


def work_once(place: Place, project: Path, title: str = "Close the pool") -> Path:
    """Give a project an entry that echod added, and return its memory file."""
    memory = project / ".rune/echoes/reviewer/MEMORY.md"
    memory.parent.mkdir(parents=True, exist_ok=True)
    if not memory.exists():
        memory.write_text("# Reviewer Memory\n")
    (memory.parent / "ward-findings.md").write_text(FINDING.format(title))
    place.run("add", project)
    place.run("run", "--once", project)
    assert title in memory.read_text()
    return memory


@pytest.mark.parametrize(
    "words", ["undo --last --yes", "prune --yes", "compress --yes", "consolidate", "pause", "resume"]
)
def test_outside_of_a_project_nothing_is_changed_without_a_path(place: Place, words: str) -> None:
    memory = work_once(place, place.home / "p")
    before = memory.read_bytes()

    code, text = place.try_run(*words.split())

    assert code == 2
    assert "--all" in text
    assert memory.read_bytes() == before
    assert "paused" not in place.run("projects")


def test_all_projects_are_meant_only_by_request(place: Place) -> None:
    memory = work_once(place, place.home / "p")

    place.run("pause", "--all")
    assert "paused" in place.run("projects")
    place.run("resume", "--all")
    place.run("undo", "--last", "--all", "--yes")

    assert "Close the pool" not in memory.read_text()


def test_a_pause_is_for_the_project_of_the_current_directory(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = make_project(place.home / "one"), make_project(place.home / "other")
    place.run("add", one)
    place.run("add", other)
    monkeypatch.chdir(one / ".rune")

    place.run("pause")

    assert {info for info in place.run("projects").splitlines() if "paused" in info} == {"~/one  (paused)"}
    place.run("pause", "--all")
    place.run("resume")
    assert "echod resume --all" in place.run("resume")


def test_the_beginning_of_an_id_changes_no_entry_of_another_project(place: Place) -> None:
    memory = work_once(place, place.home / "p")
    entry = place.run("show", place.home / "p", "--json").partition('"id": "')[2][:12]
    other = make_project(place.home / "other")

    code, text = place.try_run("forget", entry[:6], "--yes")
    assert (code, "another project" in text) == (2, True)
    assert place.try_run("forget", entry[:6], other, "--yes")[0] == 2
    assert "Close the pool" in memory.read_text()

    place.run("forget", entry, "--yes")
    assert "Close the pool" not in memory.read_text()


def test_a_renamed_project_keeps_its_undo_and_is_listed_once(place: Place) -> None:
    work_once(place, place.home / "old name")
    (place.home / "old name").rename(place.home / "née")

    assert "was ~/old name before" in place.run("add", place.home / "née")
    place.run("undo", "--last", "--yes", place.home / "née")

    assert "Close the pool" not in (place.home / "née/.rune/echoes/reviewer/MEMORY.md").read_text()
    assert place.run("projects").splitlines() == ["~/née"]


def test_a_renamed_project_is_recognised_although_agents_wrote_there(place: Place) -> None:
    work_once(place, place.home / "p")
    work_once(place, place.home / "p", "Count in cents")
    (place.home / "p").rename(place.home / "q")
    with (place.home / "q/.rune/echoes/reviewer/MEMORY.md").open("a") as file:
        file.write("\n## A section of mine\n\ntext\n")

    place.run("undo", "--last", "--yes", place.home / "q")

    text = (place.home / "q/.rune/echoes/reviewer/MEMORY.md").read_text()
    assert "Count in cents" not in text
    assert "A section of mine" in text


def test_pins_go_along_although_echod_never_wrote_there(place: Place) -> None:
    project = make_project(place.home / "p")
    (project / ".rune/echoes/reviewer/MEMORY.md").write_text(FINDING.format("Close the pool"))
    place.run("add", project)
    entry = place.run("show", project, "--json").partition('"id": "')[2][:12]
    place.run("pin", entry, project)
    project.rename(place.home / "q")

    place.run("add", place.home / "q")

    assert "pinned until" in place.run("explain", entry, place.home / "q")


@pytest.mark.parametrize("database_is_lost", [False, True], ids=["kept", "lost"])
def test_answered_questions_are_not_asked_again_after_a_move(place: Place, *, database_is_lost: bool) -> None:
    memory = work_once(place, place.home / "p")
    findings = memory.parent / "ward-findings.md"
    for title, layer in (("Round once", "etched"), ("Sum in cents", "etched")):
        findings.write_text(FINDING.format(title).replace("inscribed", layer))
        place.run("run", "--once", place.home / "p")
    answered, open_item = [item["id"] for item in json.loads(place.run("review", place.home / "p", "--json"))["items"]]
    place.run("review", "reject", answered, "--project", place.home / "p")

    for old, new in (("p", "q"), ("q", "r")):
        (place.home / old).rename(place.home / new)
        place.run("move", place.home / old, place.home / new)
        if database_is_lost:
            for file in (place.home.parent / "state").glob("echod.db*"):
                file.unlink()
            place.run("run", "--once", place.home / new)
        items = json.loads(place.run("review", place.home / new, "--json"))["items"]
        assert [item["id"] for item in items] == [open_item]


def test_an_answer_is_never_about_a_new_project_at_the_former_path(place: Place) -> None:
    for _ in range(2):
        memory = work_once(place, place.home / "p")
        (memory.parent / "ward-findings.md").write_text(FINDING.format("Round once").replace("inscribed", "etched"))
        place.run("run", "--once", place.home / "p")
        if not (place.home / "q").exists():
            (place.home / "p").rename(place.home / "q")
            place.run("move", place.home / "p", place.home / "q")
    item = json.loads(place.run("review", place.home / "p", "--json"))["items"][0]["id"]

    assert "--project" in place.try_run("review", "dismiss", item)[1]
    place.run("review", "dismiss", item, "--project", place.home / "p")

    assert item in place.run("review", place.home / "q")
    assert item not in place.run("review", place.home / "p")


def test_a_copy_is_a_project_of_its_own(place: Place) -> None:
    import shutil

    work_once(place, place.home / "p")
    shutil.copytree(place.home / "p", place.home / "q")

    assert "before" not in place.run("add", place.home / "q")
    assert place.try_run("undo", "--last", "--yes", place.home / "q")[0] == 2
    place.run("undo", "--last", "--yes", place.home / "p")


def test_move_says_it_explicitly_for_all_projects_below_a_directory(place: Place) -> None:
    for name in ("a", "b"):
        work_once(place, place.home / "src" / name)
    (place.home / "src").rename(place.home / "code")

    assert "would become" in place.run("move", "src", "code", "--dry-run")
    assert "~/src/a  (missing)" in place.run("projects")
    place.run("move", "src", "code")
    assert place.run("projects").splitlines() == ["~/code/a", "~/code/b"]
    place.run("undo", "--last", "--yes", "code/b")
    assert "known already" in place.run("move", "src/a", "code/a")


def test_move_refuses_what_was_not_moved(place: Place) -> None:
    work_once(place, place.home / "p")
    make_project(place.home / "q")

    code, text = place.try_run("move", "p", "q")
    assert (code, "still there" in text) == (2, True)
    assert place.try_run("move", "nothing", "q")[0] == 2
    assert place.try_run("move", "p", "nowhere")[0] == 2


def test_a_history_is_never_joined_to_another_one(place: Place) -> None:
    work_once(place, place.home / "p")
    work_once(place, place.home / "q", "Count in cents")
    (place.home / "p").rename(place.home / "away")

    code, text = place.try_run("move", "p", "q")

    assert code == 1
    assert "Nothing was changed" in text
    place.run("undo", "--last", "--yes", place.home / "q")


def test_missing_projects_are_named_and_nothing_is_called_unregistered(place: Place) -> None:
    work_once(place, place.home / "p")
    (place.home / "p").rename(place.home / "away")

    code, text = place.try_run("run", "--once")

    assert code == 2
    assert "No registered project is there now" in text
    assert "echod move" in text


def test_already_so_is_no_failure(place: Place) -> None:
    project = make_project(place.home / "p")

    for words in (("remove", project), ("resume", project), ("resume", "--all"), ("add", project), ("add", project)):
        assert place.try_run(*words)[0] == 0, words
    assert place.try_run("remove", place.home / "typo")[0] == 2
