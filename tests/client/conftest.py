"""Run the real Claude Code in a scratch home against a stand-in for the model.

Only where `CLAUDE_CODE_BINARY` names the client, since its licence forbids more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from echod.cli.commands.claude import PLUGIN_DIR
from tests.client.mock_api import MockApi, Turn, running_mock_api
from tests.support import Home

CLAUDE = os.environ.get("CLAUDE_CODE_BINARY")
_SESSION_SECONDS = 300


class Session(NamedTuple):
    """A finished session of the client."""

    output: str
    api: MockApi


class Client:
    """The client with its own home. `project` is the directory in which sessions run."""

    def __init__(self, home: Home, project: Path) -> None:
        self.home = home
        self.project = project
        programs = home.root / "bin"
        programs.mkdir()
        if CLAUDE:
            (programs / "claude").symlink_to(CLAUDE)
        echod = programs / "echod"
        echod.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m echod "$@"\n')
        echod.chmod(0o755)
        self.environ = {
            **home.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ANTHROPIC_API_KEY": "dummy-not-a-key",
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `claude` to its end."""
        assert CLAUDE is not None
        return subprocess.run(
            [CLAUDE, *words],
            env=self.environ,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SESSION_SECONDS,
            check=False,
        )

    def session(self, prompt: str, turns: Sequence[Turn], *words: str) -> Session:
        """Run one headless session with the plugin. The model answers with `turns`."""
        with running_mock_api(turns) as api:
            self.environ["ANTHROPIC_BASE_URL"] = api.url
            done = self.run("-p", prompt, "--plugin-dir", str(PLUGIN_DIR), *words)
            assert done.returncode == 0, f"{done.stdout}{done.stderr}"
            return Session(done.stdout, api)


@pytest.fixture
def client(tmp_path: Path) -> Client:
    if CLAUDE is None:
        pytest.skip("CLAUDE_CODE_BINARY is not set")
    root = tmp_path / "home"
    project = root / "project"
    project.mkdir(parents=True)
    home = Home(root)
    home.run("init", project, "--roles", "reviewer")
    (root / "claude").mkdir(exist_ok=True)
    (root / "claude" / "settings.json").write_text(json.dumps({"permissions": {"defaultMode": "acceptEdits"}}))
    return Client(home, project)
