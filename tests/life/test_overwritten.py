"""A note that a stale writer overwrote is restored or reported within seconds, whoever runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import Home, make_project, running_daemon, until


@pytest.fixture
def notes(home: Home, tmp_path: Path) -> Path:
    """The notes of a project with one old note."""
    root = make_project(tmp_path / "p")
    home.run("add", root)
    home.run("remember", "The first note.", "--project", root)
    return root / ".rune/echoes/notes/MEMORY.md"


def overwrite(notes: Path, stale: str) -> None:
    notes.write_text(f"{stale}\n## Notes \u2014 an agent's own (2026-01-02)\n**Source**: user:remember\n- It is so.\n")


def project(notes: Path) -> Path:
    return notes.parents[3]


def told(home: Home, notes: Path, title: str) -> bool:
    items = home.json("review", project(notes))["items"]
    return any(title in item["text"] or title in " ".join(item["titles"]) for item in items)


def test_the_service_restores_it_when_the_gate_is_open(home: Home, notes: Path) -> None:
    stale = notes.read_text()
    with running_daemon(home):
        until(lambda: home.echod("status").returncode == 0, "the service to be well")
        home.run("remember", "Deploys are frozen.", "--project", project(notes))
        overwrite(notes, stale)

        until(lambda: "Deploys are frozen" in notes.read_text() or told(home, notes, "Deploys"), "the note", 15)

    assert "an agent's own" in notes.read_text()


def test_it_is_reported_while_a_workflow_runs_and_restored_after_it(home: Home, notes: Path) -> None:
    stale = notes.read_text()
    with running_daemon(home):
        until(lambda: home.echod("status").returncode == 0, "the service to be well")
        home.run("workflow", "begin", "w", "--project", project(notes))
        home.run("remember", "Deploys are frozen.", "--project", project(notes))
        home.run("remember", "Tests run at night.", "--project", project(notes))
        overwrite(notes, stale)

        until(lambda: home.json("status")["stores"][0]["review"] > 0, "the notice", 15)
        assert told(home, notes, "Deploys are frozen")
        assert "Deploys are frozen" not in notes.read_text()
        home.run("workflow", "end", "w", "--project", project(notes))
        until(lambda: "Deploys are frozen" in notes.read_text(), "the restored note", 15)

    assert "Tests run at night" in notes.read_text()
    assert not [item for item in home.json("review", project(notes))["items"] if item["kind"] == "overwritten"]


def test_it_is_reported_without_a_service_and_restored_by_the_next_run(home: Home, notes: Path) -> None:
    stale = notes.read_text()
    home.run("remember", "Deploys are frozen.", "--project", project(notes))
    home.run("remember", "Tests run at night.", "--project", project(notes))
    overwrite(notes, stale)

    assert told(home, notes, "Deploys are frozen")
    home.run("run", "--once", project(notes))

    assert "Deploys are frozen" in notes.read_text()
    assert "an agent's own" in notes.read_text()
