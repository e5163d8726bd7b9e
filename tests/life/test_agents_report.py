"""Agents report tasks while no service runs. Once it runs, every task becomes exactly one observation."""

from __future__ import annotations

import json
from pathlib import Path

from echod.memory.document import parse
from echod.memory.model import Document
from tests.hooks.events import run_hook, rune_team_event, session_start_event, start_hook_process, teammate_event
from tests.support import Home, running_daemon, until

SUBJECTS = 12
TWICE = 3


def titles(memory: Path) -> list[str]:
    document = parse(memory.read_bytes())
    assert isinstance(document, Document)
    return sorted(block.entry.title for block in document.blocks if block.entry)


def test_a_burst_of_hooks_without_a_service_is_recorded_once_it_runs(home: Home, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    home.run("init", project)
    store = project / ".rune/echoes"
    tasks = [teammate_event(project, str(n), f"Today {n:02}") for n in range(SUBJECTS)]
    tasks += [rune_team_event(project, str(n), f"Before {n:02}") for n in range(SUBJECTS)]

    hooks = [(start_hook_process("task-completed", home.environ), task) for task in (*tasks, *tasks[:TWICE])]
    ended = [(*process.communicate(json.dumps(task).encode(), 60), process.returncode) for process, task in hooks]
    assert set(ended) == {(b"", b"", 0)}

    def spool_is_empty() -> bool:
        return not list((home.state / "spool").glob("*.json"))

    with running_daemon(home):
        until(spool_is_empty, "the spool to be empty")
        assert run_hook("task-completed", teammate_event(project, "99", "While it runs"), home.environ) == (0, b"", b"")
        until(spool_is_empty, "the spool to be empty again")

    expected = [f"Today {n:02}" for n in range(SUBJECTS)]
    assert titles(store / "orchestrator/MEMORY.md") == sorted([*expected, "While it runs"])
    assert titles(store / "reviewer/MEMORY.md") == [f"Before {n:02}" for n in range(SUBJECTS)]
    counted = {h["outcome"]: h["count"] for h in home.json("status")["hooks"]}
    assert counted == {"recorded": 2 * SUBJECTS + 1, "the task was already recorded": TWICE}


def test_a_session_registers_its_project_where_the_settings_allow_it(tmp_path: Path) -> None:
    root = tmp_path / "home"
    root.mkdir()
    home = Home(root, {"ECHOD_HOOKS__REGISTER_PROJECTS": "true"})
    project = tmp_path / "project"
    (project / ".claude/echoes/orchestrator").mkdir(parents=True)
    (project / ".claude/echoes/orchestrator/MEMORY.md").write_text("# Orchestrator Memory\n")

    with running_daemon(home):
        run_hook("session-start", session_start_event(project), home.environ, project)
        run_hook("task-completed", teammate_event(project), home.environ, project)
        memory = project / ".claude/echoes/orchestrator/MEMORY.md"
        until(lambda: titles(memory) == ["Review the session store"], "the first observation of a new project")

    assert [p["path"] for p in home.json("projects")["projects"]] == [str(project.resolve())]
