"""The plugin in the package, and the checks of `echod claude`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from echod import __version__
from echod.cli.commands.claude import MARKETPLACE_DIR, MCP_PLUGIN_DIR, PLUGIN_DIR, PLUGIN_ID, plugin_install_commands
from echod.cli.context import CommandContext
from echod.cli.root import app
from echod.hooks.run import EVENTS, RECALL_EVENTS
from echod.memory.document import parse
from echod.memory.model import Document
from tests.support import Home

pytestmark = pytest.mark.slow

# The keys that Claude Code accepts.
HOOK_EVENTS = {
    "TaskCompleted", "SessionStart", "SessionEnd", "PreCompact", "Stop", "PreToolUse", "PostToolUseFailure",
}  # fmt: skip
KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def read_json(*parts: str, root: Path = PLUGIN_DIR) -> dict[str, object]:
    value = json.loads(root.joinpath(*parts).read_text())
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize(("root", "name"), [(PLUGIN_DIR, "echod"), (MCP_PLUGIN_DIR, "echod-mcp")])
def test_a_manifest_names_plugin_and_version(root: Path, name: str) -> None:
    manifest = read_json(".claude-plugin", "plugin.json", root=root)

    assert manifest["name"] == name
    assert manifest["version"] == __version__
    assert manifest.keys() <= {"name", "version", "description", "author", "license", "keywords"}


def test_the_marketplace_leads_to_the_plugin() -> None:
    marketplace = read_json(".claude-plugin", "marketplace.json", root=MARKETPLACE_DIR)

    assert marketplace["owner"] == {"name": "echod"}
    plugins = marketplace["plugins"]
    assert isinstance(plugins, list)
    assert f"{plugins[0]['name']}@{marketplace['name']}" == PLUGIN_ID
    directories = {plugin["name"]: (MARKETPLACE_DIR / plugin["source"]).resolve() for plugin in plugins}
    assert directories == {"echod": PLUGIN_DIR.resolve(), "echod-mcp": MCP_PLUGIN_DIR.resolve()}


def test_the_server_of_the_plugin_is_a_command_of_echod() -> None:
    servers = read_json(".mcp.json", root=MCP_PLUGIN_DIR)["mcpServers"]

    assert servers == {"memory": {"command": "echod", "args": ["mcp"]}}
    assert app.get_command(click.Context(app), "mcp") is not None


def test_every_hook_calls_the_command_for_seconds_only() -> None:
    hooks = read_json("hooks", "hooks.json")["hooks"]
    assert isinstance(hooks, dict)

    assert hooks.keys() <= HOOK_EVENTS
    for event, groups in hooks.items():
        (group,) = groups
        (handler,) = group["hooks"]
        kebab = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", event).lower()
        assert kebab in (*EVENTS, *RECALL_EVENTS)
        assert handler["command"].endswith(f"exec echod hook {kebab}")
        assert (handler["type"], handler["timeout"]) == ("command", 5)


def hook_commands() -> list[str]:
    hooks = read_json("hooks", "hooks.json")["hooks"]
    assert isinstance(hooks, dict)
    return [group["hooks"][0]["command"] for groups in hooks.values() for group in groups]


def test_a_hook_is_silent_and_succeeds_where_echod_is_not_installed(tmp_path: Path) -> None:
    for command in hook_commands():
        done = subprocess.run(["/bin/sh", "-c", command], env={"PATH": str(tmp_path)}, capture_output=True)

        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_hook_passes_its_event_on(tmp_path: Path) -> None:
    program = tmp_path / "echod"
    program.write_text('#!/bin/sh\necho "$@"; while read -r line; do echo "$line"; done\n')
    program.chmod(0o755)
    command = next(command for command in hook_commands() if "task-completed" in command)

    done = subprocess.run(["/bin/sh", "-c", command], env={"PATH": str(tmp_path)}, input=b"{}\n", capture_output=True)

    assert done.stdout == b"hook task-completed\n{}\n"


def test_no_hook_runs_where_output_would_keep_the_agent_running() -> None:
    assert "Stop" not in json.dumps(read_json("hooks", "hooks.json")["hooks"])


def test_every_skill_describes_when_to_use_it() -> None:
    for skill in (PLUGIN_DIR / "skills").iterdir():
        text = (skill / "SKILL.md").read_text()
        head = text.split("---\n")[1]
        assert KEBAB.fullmatch(skill.name)
        assert f"name: {skill.name}\n" in head
        assert "Use " in head
        assert len(head) < 1024


def test_the_skill_teaches_a_format_that_echod_reads() -> None:
    text = (PLUGIN_DIR / "skills/project-memory/SKILL.md").read_text()
    example = text.partition("```markdown\n")[2].partition("```")[0]

    document = parse(example.encode())

    assert isinstance(document, Document)
    (block,) = document.blocks
    assert block.entry is not None
    assert block.entry.evidence == "`src/payments/client.py:40-71`"
    assert block.entry.confidence == 0.8


def test_the_skill_names_the_files_to_read_and_to_write() -> None:
    text = (PLUGIN_DIR / "skills/project-memory/SKILL.md").read_text()

    for name in ("notes/MEMORY.md", "team/MEMORY.md", "knowledge.md", "-findings.md", "archive/", "passwords"):
        assert name in text


# The command


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    (root / "claude/plugins").mkdir(parents=True)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("claude", "echod"):
        (programs / name).write_text(f"#!{sys.executable}\n")
        (programs / name).chmod(0o755)
    return Home(root, {"PATH": str(programs)})


def write_plugin_state(home: Home, version: str = __version__, **settings: object) -> None:
    claude = home.root / "claude"
    installed = {"version": 2, "plugins": {PLUGIN_ID: [{"scope": "user", "version": version}]}}
    (claude / "plugins/installed_plugins.json").write_text(json.dumps(installed))
    (claude / "settings.json").write_text(json.dumps({"enabledPlugins": {PLUGIN_ID: True}} | settings))


def test_the_directory_of_the_plugin_is_printed(home: Home) -> None:
    assert home.run("claude", "plugin-dir") == f"{PLUGIN_DIR}\n"


def test_a_missing_connection_is_reported_with_the_two_commands(home: Home) -> None:
    done = home.echod("claude", "check")

    assert done.returncode == 1
    assert "not installed in Claude Code" in done.stdout
    for command in plugin_install_commands():
        assert f"  {command}\n" in done.stdout


def test_an_existing_connection_is_reported_and_no_file_is_changed(home: Home) -> None:
    write_plugin_state(home)
    before = {path: path.read_bytes() for path in (home.root / "claude").rglob("*.json")}

    output = home.run("claude", "check")

    assert "The plugin is installed" in output
    assert "claude plugin install" not in output
    assert {path: path.read_bytes() for path in (home.root / "claude").rglob("*") if path.is_file()} == before


def test_the_checks_are_printed_as_json_with_stable_codes(home: Home) -> None:
    missing = home.json("claude", "check")
    write_plugin_state(home)
    present = home.json("claude", "check")

    assert (missing["connected"], present["connected"]) == (False, True)
    assert missing["commands"] == list(plugin_install_commands())
    assert {one["code"]: one["result"] for one in missing["checks"]}["plugin-missing"] == "problem"
    assert {one["code"]: one["result"] for one in present["checks"]} == {
        "claude-program": "ok",
        "plugin": "ok",
        "hook-command": "ok",
        "hook-events": "note",
        "session-summary": "note",
        "sessions-without-team": "note",
    }


def test_an_installed_plugin_counts_as_connected_where_the_path_lacks_the_client(home: Home, tmp_path: Path) -> None:
    write_plugin_state(home)
    (tmp_path / "bin/claude").unlink()

    assert "-   Claude Code is not on the PATH" in home.run("claude", "check")


def test_an_event_that_the_service_has_not_read_counts_as_reported(home: Home, tmp_path: Path) -> None:
    from tests.hooks.events import run_hook, session_start_event

    write_plugin_state(home)
    run_hook("session-start", session_start_event(tmp_path), home.environ, tmp_path)

    assert "1 event was reported and waits for the service" in home.run("claude", "check")


def test_received_events_are_reported(home: Home, tmp_path: Path) -> None:
    from tests.hooks.events import run_hook, session_start_event

    write_plugin_state(home)
    project = tmp_path / "project"
    home_of_project = project / ".rune/echoes/team"
    home_of_project.mkdir(parents=True)
    home.run("add", project)
    run_hook("session-start", session_start_event(project), home.environ, tmp_path)
    home.run("run", "--once")

    assert "1 event was reported" in home.run("claude", "check")


@pytest.mark.parametrize(
    ("version", "settings", "said"),
    [
        ("0.0.1", {}, "claude plugin update echod@echod"),
        (__version__, {"enabledPlugins": {PLUGIN_ID: False}}, "claude plugin enable echod@echod"),
        (__version__, {"disableAllHooks": True}, "All hooks are switched off"),
    ],
)
def test_settings_that_silence_an_installed_plugin_are_reported(
    home: Home, version: str, settings: dict[str, object], said: str
) -> None:
    write_plugin_state(home, version, **settings)

    done = home.echod("claude", "check")

    assert done.returncode == 1
    assert said in " ".join(done.stdout.split())


@pytest.mark.parametrize("text", ["", "[]", "{", '{"plugins": 7}', '{"plugins": {"echod@echod": 7}}'])
def test_invalid_files_of_claude_code_count_as_not_installed(home: Home, text: str) -> None:
    (home.root / "claude/plugins/installed_plugins.json").write_text(text)

    assert "not installed" in home.echod("claude", "check").stdout


def test_a_hook_that_would_not_find_its_command_is_reported(home: Home, tmp_path: Path) -> None:
    write_plugin_state(home)
    (tmp_path / "bin/echod").unlink()

    done = home.echod("claude", "check")

    assert done.returncode == 1
    assert "cannot find the command" in done.stdout


FAKE_CLAUDE = """#!/bin/sh
echo "$*" >> "$CLAUDE_CONFIG_DIR/calls"
[ -z "$FAIL" ] || { echo "no such marketplace" >&2; exit 1; }
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A directory with an `echod`, and a `claude` that records its calls."""
    directory = tmp_path / "bin"
    directory.mkdir()
    (tmp_path / "claude").mkdir()
    for name, text in (
        ("claude", FAKE_CLAUDE),
        ("echod", f"#!{sys.executable}\nfrom echod.cli.main import main\nmain()\n"),
    ):
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    return directory


def test_setup_shows_its_steps_and_changes_nothing_in_a_dry_run(tmp_path: Path, programs: Path) -> None:
    done = Home(tmp_path).echod("claude", "setup", "--summary", "--dry-run", PATH=f"{programs}:/usr/bin:/bin")

    assert done.returncode == 0, done.stderr
    assert "Run:    claude plugin marketplace add" in done.stdout
    assert "hooks.session_summary = true" in done.stdout
    assert not (tmp_path / "claude/calls").exists()


def test_setup_installs_through_the_program_and_proves_that_a_report_arrives(tmp_path: Path, programs: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("quiet_seconds = 3  # mine")
    home = Home(tmp_path, {"ECHOD_CONFIG": str(config)})

    done = home.echod("claude", "setup", "--summary", "--yes", PATH=f"{programs}:/usr/bin:/bin")

    assert done.returncode == 0, done.stderr
    assert "a test report arrived" in done.stdout
    calls = (tmp_path / "claude/calls").read_text().splitlines()
    assert calls == [command.removeprefix("claude ") for command in plugin_install_commands()]
    assert config.read_text() == "quiet_seconds = 3  # mine\n\n[hooks]\nsession_summary = true\n"


def test_setup_creates_the_memory_of_the_current_project_if_wanted(tmp_path: Path, programs: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    home, path = Home(tmp_path), f"{programs}:/usr/bin:/bin"

    without = home.echod("claude", "setup", "--yes", PATH=path, cwd=project)
    assert "no memory yet. To create one: echod init" in without.stdout
    assert not (project / ".rune").exists()

    done = home.echod("claude", "setup", "--yes", "--init", PATH=path, cwd=project)
    assert done.returncode == 0, done.stderr
    assert "Create: the memory of " in done.stdout
    assert (project / ".rune/echoes").is_dir()
    assert "no memory yet" not in done.stdout
    again = home.echod("claude", "setup", "--yes", "--init", PATH=path, cwd=project)
    assert (again.returncode, "Create:" in again.stdout) == (0, False)


@pytest.mark.parametrize(("answers", "created"), [("y\ny\ny\n", True), ("n\nn\ny\n", False)])
def test_setup_asks_on_a_terminal_what_is_wanted(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch, answers: str, *, created: bool
) -> None:
    project, config = tmp_path / "shop", tmp_path / "config.toml"
    project.mkdir()
    config.write_text("")
    home = Home(tmp_path, {"ECHOD_CONFIG": str(config)})
    monkeypatch.setattr(CommandContext, "is_interactive", property(lambda _: True))
    monkeypatch.chdir(project)

    result = CliRunner().invoke(
        app, ["claude", "setup"], prog_name="echod", input=answers,
        env={**home.environ, "PATH": f"{programs}:/usr/bin:/bin"},
    )  # fmt: skip

    assert result.exit_code == 0, result.output
    shown = [
        "Give each session a summary",
        "Create a memory for",
        "Run:    claude plugin",
        "Do it?",
        "test report arrived",
    ]
    assert [result.output.find(text) >= 0 for text in shown] == [True] * len(shown)
    assert (project / ".rune/echoes").is_dir() is created
    assert ("session_summary = true" in config.read_text()) is created


@pytest.mark.parametrize(("fail", "sentence"), [("1", "no such marketplace"), ("", "Confirm with --yes")])
def test_setup_that_cannot_go_on_says_why(tmp_path: Path, programs: Path, fail: str, sentence: str) -> None:
    yes = ["--yes"] if fail else []
    done = Home(tmp_path).echod("claude", "setup", *yes, PATH=f"{programs}:/usr/bin:/bin", FAIL=fail)

    assert done.returncode != 0
    assert sentence in done.stderr


def test_the_commands_of_the_plugin_run_only_echod() -> None:
    pages = sorted((PLUGIN_DIR / "commands").glob("*.md"))

    assert [page.stem for page in pages] == ["recall", "remember", "status"]
    for page in pages:
        front_matter = page.read_text().split("---\n")[1]
        tools = re.findall(r"allowed-tools: (.*)", front_matter)[0]
        assert all(re.fullmatch(r"Bash\(echod [a-z]+:\*\)", tool.strip()) for tool in tools.split(",")), tools
        assert "description: " in front_matter
