"""Sessions of the real Claude Code with the plugin. Skipped where the client is not installed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import psutil
import pytest

from echod.cli.commands.claude import MARKETPLACE_DIR, MCP_PLUGIN_DIR, PLUGIN_DIR, PLUGIN_ID, plugin_install_commands
from tests.client.conftest import Client
from tests.client.mock_api import ToolCall, Turn
from tests.support import Home, running_daemon, until

pytestmark = pytest.mark.timeout(900)  # on a busy machine the client alone takes a minute to start


def test_the_plugin_is_valid_by_the_clients_own_rules(client: Client) -> None:
    for directory in (PLUGIN_DIR, MCP_PLUGIN_DIR, MARKETPLACE_DIR):
        done = client.run("plugin", "validate", "--strict", str(directory))
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def test_the_two_commands_connect_and_the_check_sees_it(client: Client) -> None:
    for command in plugin_install_commands():
        subprocess.run(
            command, shell=True, env=client.environ, cwd=client.project, check=True, capture_output=True, timeout=60
        )

    listed = json.loads(client.run("plugin", "list", "--json").stdout)
    assert [plugin["enabled"] for plugin in listed if plugin["id"] == PLUGIN_ID] == [True]
    check = subprocess.run(
        ["echod", "claude", "check"],
        env=client.environ,
        cwd=client.project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "The plugin is installed" in check.stdout


def test_a_session_reports_its_start(client: Client) -> None:
    session = client.session("Say hello.", ["Hello."])

    assert "Hello." in session.output
    (spooled,) = (client.home.state / "spool").glob("*.session-start.json")
    assert json.loads(spooled.read_text())["cwd"] == str(client.project)
    client.home.run("run", "--once")
    assert "reported" in client.home.echod("claude", "check").stdout


def test_a_summary_of_the_memory_reaches_the_model_as_data(client: Client) -> None:
    client.home.run("remember", "Deploy only on Mondays", "--project", client.project)
    home = Home(client.home.root, {"ECHOD_HOOKS__SESSION_SUMMARY": "true"})
    with running_daemon(home):
        summaries = client.home.state / "summaries"
        until(lambda: any(summaries.glob("*")), "the session summary")
        session = client.session("When do we deploy?", ["On Mondays."])

    assert "Deploy only on Mondays" in session.api.sent_text()


def test_an_agent_searches_the_memory_through_the_second_plugin(client: Client) -> None:
    client.home.run("remember", "Deploy only on Mondays", "--project", client.project)
    tool = "mcp__plugin_echod-mcp_memory__echo_search"
    # The scripted model cannot look for the tool, and its first answer must not be asked for before the server is up.
    client.environ |= {"ENABLE_TOOL_SEARCH": "false", "MCP_CONNECTION_NONBLOCKING": "0"}
    client.environ |= {"MCP_CONNECT_TIMEOUT_MS": "60000", "MCP_TIMEOUT": "60000"}
    session = client.session(
        "When do we deploy?",
        [ToolCall(tool, {"query": "deploy"}), "On Mondays."],
        "--plugin-dir",
        str(MCP_PLUGIN_DIR),
        "--allowedTools",
        tool,
    )

    assert tool in [offered["name"] for offered in session.api.requests[-1]["tools"]]
    results = [
        json.dumps(block["content"])
        for message in session.api.requests[-1]["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block.get("type") == "tool_result"
    ]
    assert len(results) == 1
    assert "Deploy only on Mondays" in results[0]


def test_the_service_archives_a_session_when_it_ends(client: Client) -> None:
    client.home.run("init", client.project, "--sessions")
    archives = client.home.state / "data/sessions"
    with running_daemon(client.home):
        client.session("Explain the rate limiter, please.", ["It counts requests in a window of a minute."])

        until(lambda: list(archives.glob("*/memory/conversations/conversation-001.md")), "the archive")

    (file,) = archives.glob("*/memory/conversations/*.md")
    text = file.read_text()
    messages = text[text.index("# Conversation 001") :]
    assert messages.count("Explain the rate limiter, please.") == 1
    assert "It counts requests in a window of a minute." in messages


def test_a_sub_agent_is_archived_with_its_session(client: Client) -> None:
    client.home.run("init", client.project, "--sessions")
    archives = client.home.state / "data/sessions"
    task = {"description": "look around", "prompt": "Count the drawers.", "subagent_type": "general-purpose"}
    with running_daemon(client.home):
        # Newer clients let the agent work in the background, so either side may get the first answer.
        turns: list[Turn] = [ToolCall("Task", task), "There are seven drawers.", "There are seven drawers."]
        client.session("Let an agent count.", turns, "--allowedTools", "Task,Agent")

        until(lambda: list(archives.glob("*/memory/conversations/conversation-001.md")), "the archive")

    (file,) = archives.glob("*/memory/conversations/*.md")
    text = file.read_text()
    part = text[text.index("### Sub-agent: general-purpose, look around\n\n**Task**: Count the drawers.\n") :]
    assert "There are seven drawers." in part
    assert part.count("Count the drawers.") == 1
    assert "message_count: 1\n" not in text
    assert text.count("### User") == 1


def test_a_note_is_shown_at_the_edit_that_it_is_about_and_nowhere_else(client: Client) -> None:
    for name in ("cited.py", "other.py"):
        (client.project / name).write_text("one = 1\n")
    memory = client.project / ".rune/echoes/reviewer/MEMORY.md"
    memory.write_text(
        memory.read_text() + "\n## Inscribed \u2014 Keep one at one (2026-10-01)\n**Source**: `r1`\n"
        "**Evidence**: `cited.py:1`\n\n- The value of one is part of the file format.\n"
    )
    client.home.run("search", "format", client.project)
    client.environ["ECHOD_HOOKS__RECALL"] = "edit"

    def edit(name: str) -> list[Turn]:
        path = str(client.project / name)
        change = {"file_path": path, "old_string": "one = 1", "new_string": "one = 2"}
        return [ToolCall("Read", {"file_path": path}), ToolCall("Edit", change), "Done."]

    other = client.session("Change other.py.", edit("other.py"), "--allowedTools", "Read,Edit")
    assert (client.project / "other.py").read_text() == "one = 2\n"
    assert "part of the file format" not in other.api.sent_text()

    cited = client.session("Change cited.py.", edit("cited.py"), "--allowedTools", "Read,Edit")
    assert (client.project / "cited.py").read_text() == "one = 2\n"
    before_edit = json.dumps(
        [request for request in cited.api.requests if '"Edit"' not in json.dumps(request["messages"])]
    )
    assert "part of the file format" not in before_edit
    assert "part of the file format" in cited.api.sent_text()
    assert "cited.py:1" in client.home.run("log", "--recall", client.project)


def test_a_session_searches_and_learns_through_the_server_and_leaves_no_process(client: Client) -> None:
    client.home.run("remember", "Deploy only on Mondays", "--project", client.project)
    servers = {"mcpServers": {"memory": {"command": "echod", "args": ["mcp"]}}}
    learning = {"role": "reviewer", "title": "Locks need a timeout", "learning": "A lock without one hung the build."}
    turns: list[Turn] = [
        *[ToolCall("WaitForMcpServers", {})] * 8,  # each waits a few seconds at most
        ToolCall("mcp__memory__echo_search", {"query": "deploy mondays", "scope": "project"}),
        ToolCall("mcp__memory__echo_learn", learning),
        "On Mondays.",
    ]

    session = client.session(
        "When do we deploy?", turns, "--mcp-config", json.dumps(servers), "--strict-mcp-config",
        "--allowedTools", "WaitForMcpServers,mcp__memory__echo_search,mcp__memory__echo_learn",
    )  # fmt: skip

    assert "On Mondays." in session.output
    assert "context_preamble" in session.api.sent_text()
    assert "Deploy only on Mondays" in session.api.sent_text()
    (spooled,) = (client.home.state / "spool").glob("*.learn.json")
    assert json.loads(spooled.read_text())["title"] == "Locks need a timeout"
    until(lambda: not _servers_in(client.project), "the end of the server")


def _servers_in(project: Path) -> list[psutil.Process]:
    """Return the servers that were started in a project."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cmdline()[-2:] == ["echod", "mcp"] and process.cwd() == str(project):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found
