"""The hook of a starting session prints what the daemon keeps ready, and nothing if that is not enabled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from echod.contract.status import SessionsInfo
from echod.daemon.upkeep import PressureNotices
from echod.hooks.run import session_output, summary_name
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


class TestPressure:
    """A notice about a curated MEMORY.md that fills up reaches one session for each level of an episode."""

    def start(self, state: Path, project: Path) -> str:
        output = session_output(str(state), {"CLAUDE_PROJECT_DIR": str(project / "src")})
        return json.loads(output)["hookSpecificOutput"]["additionalContext"] if output else ""

    def tell(self, state: Path, project: Path, pressure: str, percent: int) -> str:
        info = SessionsInfo(str(project), str(project / 'ro"ot'), 1, 0, 0, 30, percent, pressure)
        PressureNotices(state).update((info,))
        return self.start(state, project)

    def test_it_is_given_once_for_each_level_of_an_episode(self, tmp_path: Path, project: Path) -> None:
        given = [
            self.tell(tmp_path, project, pressure, percent)
            for pressure, percent in (
                ("notice", 71), ("notice", 75), ("warning", 92), ("notice", 80), ("warning", 93), ("full", 100),
                ("none", 40), ("notice", 72),
            )
        ]  # fmt: skip

        assert [text.partition(" is ")[2].partition(" full")[0] for text in given] == [
            "71 %", "", "92 %", "", "", "100 %", "", "72 %",
        ]  # fmt: skip
        assert 'ro"ot/memory/MEMORY.md' in given[0]
        assert "echod sessions distill" in given[0]

    def test_it_follows_the_summary_in_one_answer(self, tmp_path: Path, project: Path) -> None:
        (tmp_path / "summaries").mkdir()
        output = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "the summary"}}
        (tmp_path / "summaries" / str(summary_name(str(project)))).write_text(json.dumps(output))

        text = self.tell(tmp_path, project, "warning", 95)

        assert text.startswith("the summary\n\nFrom echod: the curated memory")
        assert self.start(tmp_path, project) == "the summary"

    def test_it_is_withdrawn_when_the_memory_is_short_or_nothing_is_archived_any_more(
        self, tmp_path: Path, project: Path
    ) -> None:
        notices = PressureNotices(tmp_path)
        full = SessionsInfo(str(project), "r", 1, 0, 0, 30, 100, "full")
        for later in ((full._replace(pressure="none"),), ()):
            notices.update((full,))
            notices.update(None)
            assert list((tmp_path / "notices").iterdir()) != []
            notices.update(later)
            assert list((tmp_path / "notices").iterdir()) == []


def test_the_service_gives_a_notice_at_the_start_of_a_session(tmp_path: Path, project: Path) -> None:
    home = make_home(tmp_path, "false")
    home.run("init", project, "--sessions")
    (memory,) = (home.state / "data/sessions").glob("*/memory/MEMORY.md")
    memory.write_text("# Memory\n" + "- a fact\n" * 185)
    with running_daemon(home):
        until(lambda: list((home.state / "notices").glob("*.json")) != [], "the notice")
        first, second = (
            run_hook("session-start", session_start_event(project), home.environ, project)[1] for _ in range(2)
        )

    assert "is 93 % full" in json.loads(first)["hookSpecificOutput"]["additionalContext"]
    assert second == b""
