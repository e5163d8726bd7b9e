"""The plugin in the real Claude Code, offline; only where `CLAUDE_CODE_BINARY` names one (its licence forbids more)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from echod.cli.commands.claude import MARKETPLACE_DIR, PLUGIN_DIR, PLUGIN_ID, plugin_install_commands

BINARY = os.environ.get("CLAUDE_CODE_BINARY", "")
pytestmark = pytest.mark.skipif(not BINARY, reason="CLAUDE_CODE_BINARY is not set")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").symlink_to(BINARY)
    (programs / "echod").write_text(f'#!/bin/sh\nexec {sys.executable} -m echod "$@"\n')
    (programs / "echod").chmod(0o755)
    (tmp_path / "home").mkdir()
    return {
        "HOME": str(tmp_path / "home"),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",  # no server listens there
        "ANTHROPIC_API_KEY": "no-key",
        "ECHOD_STATE_DIR": str(tmp_path / "state"),
    }


def claude(environ: dict[str, str], cwd: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = ["claude", *map(str, arguments)]
    return subprocess.run(command, env=environ, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("directory", [PLUGIN_DIR, MARKETPLACE_DIR])
def test_claude_code_finds_no_problem(environ: dict[str, str], tmp_path: Path, directory: Path) -> None:
    done = claude(environ, tmp_path, "plugin", "validate", "--strict", directory)

    assert done.returncode == 0, done.stdout


def test_the_two_commands_connect_and_the_check_sees_it(environ: dict[str, str], tmp_path: Path) -> None:
    for command in plugin_install_commands():
        subprocess.run(command, shell=True, env=environ, cwd=tmp_path, check=True, capture_output=True, timeout=60)

    listed = json.loads(claude(environ, tmp_path, "plugin", "list", "--json").stdout)
    assert [plugin["enabled"] for plugin in listed if plugin["id"] == PLUGIN_ID] == [True]
    check = subprocess.run(
        ["echod", "claude", "check"], env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert "The plugin is installed" in check.stdout


def test_a_session_reports_its_start(environ: dict[str, str], tmp_path: Path) -> None:
    claude(environ, tmp_path, "-p", "hello", "--plugin-dir", PLUGIN_DIR)

    (spooled,) = (tmp_path / "state/spool").glob("*.session-start.json")
    assert json.loads(spooled.read_text())["cwd"] == str(tmp_path)
