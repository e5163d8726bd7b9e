"""A project in a git repository whose history tests make."""

from __future__ import annotations

import os
import random
import subprocess
import time
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from echod.evidence.verifier import CheckedCitation, EvidenceChange, EvidenceVerifier

LINES = [f"value_{number} = compute({number}, base={number * 7})" for number in range(1, 41)]
DAY = date(2026, 10, 1)


def distinct_lines(count: int) -> list[str]:
    """Return lines of code that have little in common."""
    chance = random.Random(11)

    def word() -> str:
        return "".join(chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(4))

    return [f"{word()}.{word()}({word()}, {word()}[{word()}])" for _ in range(count)]


def git(directory: Path, *words: str, day: date = DAY) -> str:
    """Run git as on this day, at noon."""
    stamp = datetime(day.year, day.month, day.day, 12).astimezone().isoformat()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp, "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always", *words]
    return subprocess.run(command, cwd=directory, env=environ, check=True, capture_output=True, text=True).stdout


class History:
    """A project with commits, one a day."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.day = DAY
        root.mkdir()
        git(root, "init", "-q")

    def write(self, path: str, lines: list[str]) -> None:
        """Write a file, without a commit."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n")

    def commit(self) -> str:
        """Commit everything, a day after the last commit, and return the commit's name."""
        git(self.root, "add", "-A", day=self.day)
        git(self.root, "commit", "-qm", f"on {self.day}", day=self.day)
        self.day += timedelta(days=1)
        return git(self.root, "rev-parse", "HEAD").strip()

    def check(self, cite: str, day: date | None = DAY) -> CheckedCitation:
        """Return the state of a citation of an entry of this day."""
        verifier = EvidenceVerifier(self.root, time.time())
        (checked,) = verifier.check([cite], day, {}).citations
        verifier.close()
        return checked

    def change(self, cite: str) -> EvidenceChange | None:
        """Return which commit changed the cited lines."""
        verifier = EvidenceVerifier(self.root, time.time())
        found = verifier.check([cite], DAY, {})
        base = found.taken[cite].fingerprint
        assert base is not None
        try:
            return verifier.find_change(base, found.citations[0].state)
        finally:
            verifier.close()


@pytest.fixture
def history(tmp_path: Path) -> History:
    made = History(tmp_path / "project")
    made.write("src/app.py", LINES)
    made.commit()
    return made
