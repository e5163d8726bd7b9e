"""A project that somebody wants to do harm with, a place outside of it, and the real command."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import Home, finding, project

SECRET_OUTSIDE = "nothing of this may change or be copied\n"


@dataclass(frozen=True)
class Target:
    """What is attacked: a project with one role that has a memory and findings, beside a place of other people."""

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
        path.write_text(text or finding("Timeouts are missing"))
        return path

    def once(self) -> str:
        """What `echod run --once` says; it must end by itself, with no traceback."""
        result = self.home.echod("run", "--once", self.root)
        assert result.returncode in (0, 1, 2), result.stderr
        assert "Traceback" not in result.stderr + result.stdout
        return " ".join((result.stdout + result.stderr).split())


def inventory(root: Path) -> dict[str, tuple[int, str]]:
    """Every name below `root`: its type and its content; nothing is followed, and no FIFO is opened."""
    found: dict[str, tuple[int, str]] = {}
    for directory, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(directory, name)
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                said = str(path.readlink())
            elif stat.S_ISREG(status.st_mode):
                said = _digest(path) if status.st_size < 1 << 20 else f"{status.st_size} bytes"
            else:
                said = ""
            found[str(path.relative_to(root))] = (stat.S_IFMT(status.st_mode), said)
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
    made = Target(home, project(tmp_path / "project"), outside)
    made.memory.write_text(finding("Money is in cents", date="2026-11-01"))
    return made
