"""Sessions of the real Claude Code with the plugin. Skipped where the client is not installed."""

from __future__ import annotations

import json

from echod.cli.commands.claude import MARKETPLACE_DIR, PLUGIN_DIR
from tests.client.conftest import Client
from tests.support import Home, running_daemon, until


def test_the_plugin_is_valid_by_the_clients_own_rules(client: Client) -> None:
    for directory in (PLUGIN_DIR, MARKETPLACE_DIR):
        done = client.run("plugin", "validate", "--strict", str(directory))
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def test_the_plugin_is_installed_from_its_marketplace(client: Client) -> None:
    assert client.run("plugin", "marketplace", "add", str(MARKETPLACE_DIR)).returncode == 0
    assert client.run("plugin", "install", "echod@echod").returncode == 0

    listed = json.loads(client.run("plugin", "list", "--json").stdout)

    assert [plugin["id"] for plugin in listed] == ["echod@echod"]


def test_a_session_reports_its_start(client: Client) -> None:
    session = client.session("Say hello.", ["Hello."])

    assert "Hello." in session.output
    spooled = [file.read_text() for file in (client.home.state / "spool").iterdir()]
    assert any('"SessionStart"' in event for event in spooled), spooled
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
