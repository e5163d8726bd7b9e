"""A project of an attacker, a directory outside of it, and the real command."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import stat
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from echod.cli.commands.run import run_once
from echod.cli.context import CommandContext
from echod.errors import EchodError
from tests.support import Home, finding_text, make_project

SECRET_OUTSIDE = "nothing of this may change or be copied\n"


@dataclass(frozen=True)
class Target:
    """The attacked project, with one role that has a memory and findings, beside a directory of other users."""

    home: Home
    root: Path
    outside: Path

    @property
    def role(self) -> Path:
        return self.root / ".rune/echoes/reviewer"

    @property
    def memory(self) -> Path:
        return self.role / "MEMORY.md"

    def findings(self, agent: str = "ward", text: str = "") -> Path:
        path = self.role / f"{agent}-findings.md"
        path.write_text(text or finding_text("Timeouts are missing"))
        return path

    def run_once(self) -> str:
        """Return the output of `echod run --once`, run in this process. It must end, with a message if it fails."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            try:
                run_once(_QuietContext(self.home.environ, self.home.root), [self.root], 0.0)
            except click.exceptions.Exit:
                pass
            except EchodError as error:
                output.write(str(error))
        return " ".join(output.getvalue().split())


class _QuietContext(CommandContext):
    """Leaves the logging of the test run as it is."""

    def _configure_log_file(self) -> None:
        pass


def snapshot_tree(root: Path) -> dict[str, tuple[int, str]]:
    """Return type and content of every name below `root`. No link is followed, and no FIFO is opened."""
    found: dict[str, tuple[int, str]] = {}
    for directory, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(directory, name)
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                content = str(path.readlink())
            elif stat.S_ISREG(status.st_mode):
                content = _digest(path) if status.st_size < 1 << 20 else f"{status.st_size} bytes"
            else:
                content = ""
            found[str(path.relative_to(root))] = (stat.S_IFMT(status.st_mode), content)
    return found


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def target(tmp_path: Path) -> Target:
    home = Home(tmp_path / "home")
    home.root.mkdir()
    outside = tmp_path / "outside"
    (outside / "reviewer").mkdir(parents=True)
    (outside / "precious.md").write_text(SECRET_OUTSIDE)
    made = Target(home, make_project(tmp_path / "project"), outside)
    made.memory.write_text(finding_text("Money is in cents", date="2026-11-01"))
    return made
