"""The exit code of every command: in an empty home, with a wrong option, and with invalid settings."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import structlog
from click.testing import CliRunner

from echod.cli.root import app
from echod.errors import EchodError, ExitCode
from tests.cli.reference import all_command_paths
from tests.support import Home, make_project

TESTED_ELSEWHERE: Final = {
    "demo": "tests/cli/test_demo.py: it runs the service",
    "hook": "tests/hooks: it always ends with 0 and ends the process",
    "mcp": "tests/mcp_server: it serves its standard streams and ends the process with the client",
    "service": "tests/service: it would speak to this machine's service manager",
}

OK, FAILED, USAGE, NOT_RUNNING = ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.NOT_RUNNING

EXIT_CODES_IN_EMPTY_HOME: Final[dict[str, tuple[str, ExitCode]]] = {
    "add": (".", USAGE),
    "audit": ("", OK),
    "brief": ("", USAGE),
    "claude check": ("", FAILED),
    "claude setup": ("--dry-run", FAILED),
    "claude plugin-dir": ("", OK),
    "completion": ("bash", OK),
    "compress": ("--dry-run", USAGE),
    "config check": ("", OK),
    "config path": ("", OK),
    "config show": ("", OK),
    "consolidate": ("--dry-run", USAGE),
    "config edit": ("", FAILED),
    "config init": ("", OK),
    "doctor": ("", FAILED),
    "elevate": ("4f1c --dry-run", USAGE),
    "explain": ("4f1c", USAGE),
    "forget": ("4f1c --dry-run", USAGE),
    "gate": (".", USAGE),
    "help": ("prune", OK),
    "import-access": ("--dry-run", USAGE),
    "ingest": ("report.md", USAGE),
    "merge-driver": ("base", USAGE),
    "migrate": ("--dry-run", USAGE),
    "promote": ("4f1c --category performance", USAGE),
    "remembrance": ("", OK),
    "remembrance check": ("", OK),
    "sync": ("", USAGE),
    "sync now": ("", USAGE),
    "sync resolve": ("", USAGE),
    "sync setup": ("", USAGE),
    "sync status": ("", USAGE),
    "init": ("--dry-run", USAGE),
    "jobs": ("", OK),
    "jobs retry": ("7", USAGE),
    "log": ("", OK),
    "move": ("/no/such/old .", USAGE),
    "packs install": ("no-such-pack --dry-run", USAGE),
    "packs list": ("", OK),
    "packs remove": ("no-such-pack --dry-run", USAGE),
    "packs status": ("", OK),
    "packs update": ("", OK),
    "pause": ("--all", OK),
    "picture": ("", OK),
    "pin": ("4f1c", USAGE),
    "projects": ("", OK),
    "prune": ("--dry-run", USAGE),
    "raise": ("4f1c etched --dry-run", USAGE),
    "record-access": ("4f1c", USAGE),
    "remember": ("text --dry-run", USAGE),
    "remove": (".", OK),
    "reset": ("--dry-run", USAGE),
    "restore": ("4f1c --dry-run", USAGE),
    "resume": ("--all", OK),
    "review": ("", OK),
    "review accept": ("4f1c", USAGE),
    "review dismiss": ("4f1c", USAGE),
    "review reject": ("4f1c", USAGE),
    "run": ("--once", USAGE),
    "scrub": ("--dry-run", USAGE),
    "search": ("word", OK),
    "sessions archive": ("", USAGE),
    "sessions checkpoint": ("4f1c", USAGE),
    "sessions consume": ("", USAGE),
    "sessions distill": ("", USAGE),
    "sessions forget": ("7 --dry-run", USAGE),
    "sessions init": ("", USAGE),
    "sessions list": ("", USAGE),
    "sessions rebuild": ("--dry-run", USAGE),
    "sessions rescue": ("--dry-run", USAGE),
    "sessions search": ("word", USAGE),
    "sessions show": ("7", USAGE),
    "sessions status": ("", USAGE),
    "show": ("", OK),
    "status": ("", NOT_RUNNING),
    "undo": ("--last --dry-run", USAGE),
    "unpin": ("4f1c", USAGE),
    "verify": ("", OK),
    "workflow begin": ("nightly", USAGE),
    "workflow end": ("nightly", USAGE),
}

INDEPENDENT_OF_SETTINGS: Final = frozenset({"claude plugin-dir", "completion", "config path", "help"})
"""Commands that do not read the settings."""

COMMANDS: Final = tuple(" ".join(path) for path in all_command_paths() if path[0] not in TESTED_ELSEWHERE)


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, which is also the current directory."""
    for name in [name for name in os.environ if name.startswith(("ECHOD_", "CLAUDE_", "XDG_"))]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ECHOD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("ECHOD_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "claude"))
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home)
    return home


def exit_code(*words: str) -> int:
    """Return the exit code of a command, as `echod.cli.main` does."""
    result = CliRunner().invoke(app, words, prog_name="echod")
    if isinstance(result.exception, EchodError):
        return result.exception.exit_code
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result.exit_code


def test_the_table_has_every_command() -> None:
    assert set(COMMANDS) == set(EXIT_CODES_IN_EMPTY_HOME)


@pytest.mark.parametrize("command", COMMANDS)
def test_in_an_empty_home_a_command_exits_as_documented(empty: Path, command: str) -> None:
    words, code = EXIT_CODES_IN_EMPTY_HOME[command]

    assert exit_code(*command.split(), *words.split()) == code


@pytest.mark.parametrize("command", [*COMMANDS, "mcp"])
def test_a_wrong_option_ends_every_command_with_2(empty: Path, command: str) -> None:
    assert exit_code(*command.split(), "--no-such-option") == USAGE


@pytest.mark.parametrize(
    "command", sorted({"status", "projects", "gate", "add", "run", "undo", "config check", "pause"})
)
def test_settings_that_cannot_be_used_end_a_command_with_78(
    empty: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = empty / "wrong.toml"
    config.write_text("quiet_secnds = 3")
    (empty / "project/.rune/echoes/reviewer").mkdir(parents=True)
    monkeypatch.chdir(empty / "project")
    words = EXIT_CODES_IN_EMPTY_HOME[command][0].split()

    expected = ExitCode.OK if command == "pause" else ExitCode.CONFIGURATION
    assert exit_code("--config", str(config), *command.split(), *words) == expected


@pytest.mark.parametrize("command", ["run", "run --once"])
def test_a_directory_for_conversations_that_cannot_be_used_ends_a_run_with_78(tmp_path: Path, command: str) -> None:
    home = Home(tmp_path, {})
    home.run("add", make_project(tmp_path / "project", "reviewer"))

    result = home.echod(*command.split(), ECHOD_SESSIONS__ROOT="relative/directory")

    assert result.returncode == ExitCode.CONFIGURATION
    assert "sessions.root must be an absolute path" in " ".join(result.stderr.split())


@pytest.mark.parametrize("command", sorted(INDEPENDENT_OF_SETTINGS))
def test_commands_without_settings_work_with_invalid_ones(empty: Path, command: str) -> None:
    config = empty / "wrong.toml"
    config.write_text("quiet_secnds = 3")

    assert exit_code("--config", str(config), *command.split(), *EXIT_CODES_IN_EMPTY_HOME[command][0].split()) == OK
