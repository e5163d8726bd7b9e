"""A project whose commands run in this process."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from echod.cli.root import run_command_line
from echod.errors import EchodError
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document
from tests.support import Home

PARTS = (
    "- **Symptom**: the user list takes five seconds.\n"
    "  **Root cause**: one query for each row of the list.\n"
    "  **Solution**: load the posts together with the users."
)


def entry_text(
    title: str = "User list takes five seconds",
    body: str = PARTS,
    *,
    layer: str = "etched",
    confidence: str = "1.0",
    day: str = "2026-02-11",
    source: str = "manual",
    evidence: str = "`src/user.py:5-15` \u2014 a loop",
    extra: str = "",
) -> str:
    return (
        f"### [{day}] Pattern: {title}\n- **layer**: {layer}\n- **source**: {source}\n- **confidence**: {confidence}\n"
        f"- **evidence**: {evidence}\n- **verified**: {day}\n- **supersedes**: none\n{extra}{body}\n"
    )


class Result(NamedTuple):
    """The exit code and the output of a command, errors included."""

    code: int
    output: str


class Project:
    """A project with a store, whose commands run in this process."""

    def __init__(self, root: Path, home: Home) -> None:
        self.root = root
        self.home = home
        self.store = root / ".rune/echoes"
        self.solutions = root / "docs/solutions"

    def memory(self, role: str = "reviewer", store: str = ".rune/echoes") -> Path:
        return self.root / store / role / "MEMORY.md"

    def write(self, *entries: str, role: str = "reviewer", store: str = ".rune/echoes") -> Path:
        file = self.memory(role, store)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {role.title()} Memory\n\n" + "\n".join(entries))
        return file

    def ids(self, role: str = "reviewer") -> list[str]:
        document = parse(self.memory(role).read_bytes())
        assert isinstance(document, Document)
        return [identity for identity in entry_ids(role, document) if identity]

    def echod(self, *words: str) -> Result:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                code = run_command_line(words)
            except EchodError as error:
                return Result(error.exit_code, f"{out.getvalue()}{error}")
        return Result(code, out.getvalue())

    def promote(self, *words: str, category: str = "performance") -> Result:
        return self.echod("promote", self.ids()[0], "--category", category, *words)

    def documents(self) -> list[str]:
        return sorted(str(p.relative_to(self.solutions)) for p in self.solutions.rglob("*.md"))

    def tree(self) -> dict[str, bytes]:
        """Every file of the project but echod's private ones."""
        return {
            str(p.relative_to(self.root)): p.read_bytes()
            for p in self.root.rglob("*")
            if p.is_file() and ".echod" not in p.parts
        }


def at_terminal(project: Project, words: list[str], typed: str, **changed: str) -> tuple[int, str]:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "echod", *words]
    environ = {**project.home.environ, **changed}
    process = subprocess.Popen(command, env=environ, cwd=project.root, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, typed.encode())
    output = b""
    try:
        while True:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    output += os.read(ours, 65_536)
                except OSError:
                    break
            elif process.poll() is not None:
                break
        return process.wait(30), output.decode()
    finally:
        os.close(ours)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    home = Home(tmp_path / "home")
    home.root.mkdir()
    root = tmp_path / "project"
    (root / ".rune/echoes").mkdir(parents=True)
    for name in ("CLAUDE_PID", "CLAUDE_CODE_SESSION_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in home.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(root)
    return Project(root.resolve(), home)


@pytest.fixture
def etched(project: Project) -> Callable[..., Project]:
    """Write one entry, and return its project."""

    def write(*arguments: str, **changed: str) -> Project:
        project.write(entry_text(*arguments, **changed))
        return project

    return write
