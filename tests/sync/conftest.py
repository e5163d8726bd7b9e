"""Clones of a repository with a memory, in a home with echod on its PATH."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import Home

ECHO = ".rune/echoes/reviewer/MEMORY.md"
TITLE = "<!-- echo-schema: v1 -->\n# Reviewer Memory\n\n"


def entry(name: str, body: str = "", *, day: int = 1) -> str:
    return (
        f"### [2026-01-{day:02}] Pattern: {name}\n- **layer**: inscribed\n- **source**: `rune:review {name}`\n"
        f"- {body or f'Always do {name} first.'}\n\n"
    )


def file_of(*entries: str) -> str:
    return (TITLE + "".join(entries)).rstrip("\n") + "\n"


class Machine:
    """A home directory with git, echod and projects of its own."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True)
        self.home = Home(root)
        self.variables: dict[str, str] = {}
        self.bin = root / "bin"
        self.bin.mkdir()
        self.install_echod()
        (root / ".gitconfig").write_text(
            "[user]\nname = A User\nemail = user@example.org\n[init]\ndefaultBranch = main\n[commit]\ngpgsign = false\n"
            '[protocol "file"]\nallow = always\n'
        )

    @property
    def environ(self) -> dict[str, str]:
        path = f"{self.bin}:{os.environ['PATH']}"
        return {**self.home.environ, "PATH": path, "GIT_CONFIG_NOSYSTEM": "1", **self.variables}

    def install_echod(self, script: str | None = None) -> Path:
        program = self.bin / "echod"
        program.write_text(script or f'#!/bin/sh\nexec "{sys.executable}" -m echod "$@"\n')
        program.chmod(0o755)
        return program

    def git(self, *words: object, cwd: Path, fails: bool = False) -> str:
        done = subprocess.run(
            ["git", *map(str, words)], cwd=cwd, env=self.environ, capture_output=True, text=True, check=False
        )
        assert fails or done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def echod(self, *words: object, cwd: Path | str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "echod", *map(str, words)],
            cwd=cwd or self.home.root,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def run(self, *words: object, cwd: Path | str | None = None) -> str:
        done = self.echod(*words, cwd=cwd)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "one")


@pytest.fixture
def repository(machine: Machine) -> Path:
    """Return a repository whose memory is tracked, with one commit."""
    root = machine.home.root / "project"
    (root / ECHO).parent.mkdir(parents=True)
    machine.git("init", "-q", root, cwd=machine.home.root)
    (root / ECHO).write_text(file_of(entry("alpha"), entry("beta", day=2)))
    machine.git("add", "-A", cwd=root)
    machine.git("commit", "-qm", "start", cwd=root)
    return root
