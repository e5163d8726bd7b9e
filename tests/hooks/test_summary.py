"""The hook of a starting session prints the summary that the daemon keeps ready, and nothing if that is not enabled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from echod.hooks.summary import summary_name
from tests.hooks.events import run_hook, session_start_event
from tests.support import Home, running_daemon, until

ENTRY = "# M\n\n## Etched \u2014 Use tabs (2026-11-01)\n\n**Source**: `test`\n\nTabs are the convention here.\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = (tmp_path / "my 50% project").resolve()
    (root / "src").mkdir(parents=True)
    (root / ".rune/echoes/team").mkdir(parents=True)
    (root / ".rune/echoes/team/MEMORY.md").write_text(ENTRY)
    return root


def make_home(tmp_path: Path, enabled: str) -> Home:
    (tmp_path / "home").mkdir(exist_ok=True)
    return Home(tmp_path / "home", {"ECHOD_HOOKS__SESSION_SUMMARY": enabled})


def summary_files(home: Home) -> list[Path]:
    directory = home.state / "summaries"
    return sorted(directory.iterdir()) if directory.exists() else []


def test_a_session_receives_the_summary_until_the_user_changes_the_setting(tmp_path: Path, project: Path) -> None:
    home = make_home(tmp_path, "true")
    home.run("add", project)
    with running_daemon(home):
        until(lambda: len(summary_files(home)) == 1, "the summary")
        code, out, err = run_hook("session-start", session_start_event(project), home.environ, project / "src")
        (project / ".rune/echoes/team/MEMORY.md").write_text(ENTRY.replace("tabs", "spaces"))
        until(lambda: "spaces" in summary_files(home)[0].read_text(), "the summary of the changed memory")

    assert (code, err) == (0, b"")
    output = json.loads(out)["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart"
    assert "- team, 2026-11-01: Use tabs. Tabs are the convention here.\n" in output["additionalContext"]
    for source in ("resume", "fork"):
        assert run_hook("session-start", session_start_event(project, source), home.environ, project)[1] == b""
    assert run_hook("session-start", session_start_event(project, "compact"), home.environ, project)[1] != b""

    with running_daemon(make_home(tmp_path, "false")):
        until(lambda: summary_files(home) == [], "the summary to be removed")
    assert run_hook("session-start", session_start_event(project), home.environ, project) == (0, b"", b"")


def test_only_the_start_of_a_session_is_answered(tmp_path: Path, project: Path) -> None:
    home = make_home(tmp_path, "true")
    (home.state / "summaries").mkdir(parents=True)
    name = summary_name(str(project))
    assert name is not None
    (home.state / "summaries" / name).write_text("{}")

    assert run_hook("session-start", session_start_event(project), home.environ, project / "src")[1] == b"{}"
    assert run_hook("stop", session_start_event(project), home.environ, project)[1] == b""
    assert run_hook("session-start", session_start_event(project), home.environ, tmp_path)[1] == b""


def test_the_project_is_the_one_that_claude_code_names(tmp_path: Path, project: Path) -> None:
    home = make_home(tmp_path, "true")
    (home.state / "summaries").mkdir(parents=True)
    (home.state / "summaries" / str(summary_name(str(project)))).write_text("{}")

    environ = {**home.environ, "CLAUDE_PROJECT_DIR": str(project)}
    assert run_hook("session-start", session_start_event(project), environ, tmp_path)[1] == b"{}"


def test_a_summary_that_is_a_link_or_too_long_is_not_printed(tmp_path: Path, project: Path) -> None:
    home = make_home(tmp_path, "true")
    file = home.state / "summaries" / str(summary_name(str(project)))
    file.parent.mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    file.symlink_to(tmp_path / "secret")
    assert run_hook("session-start", session_start_event(project), home.environ, project)[1] == b""

    file.unlink()
    file.write_text("x" * 20_000)
    assert run_hook("session-start", session_start_event(project), home.environ, project)[1] == b""


def test_two_projects_never_share_a_name() -> None:
    assert summary_name("/a%2Fb") != summary_name("/a/b")
    assert summary_name("/" + "x" * 300) is None
