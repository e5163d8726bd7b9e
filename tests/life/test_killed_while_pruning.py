"""A service that consolidates and prunes is killed repeatedly, and every finding is still somewhere."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from echod.memory.archive import read_archive
from tests.life.files import MEMORY_HEADER, learning_text, protected_entries
from tests.life.test_service import ROLES, FindingsStorm, remaining_findings
from tests.support import Home, finding_text, make_project, start_daemon, until

LIMIT = 100
EAGER_PRUNING = {"ECHOD_MEMORY_LINE_LIMIT": str(LIMIT), "ECHOD_POLICY__DAILY_LEARNING_SHARE": "1"}
"""Settings under which every entry may be removed on the same day. Otherwise one prune would do all the work."""


class RoleFiles:
    """A role's memory and archive."""

    def __init__(self, root: Path, name: str) -> None:
        self.path = root / ".rune/echoes" / name

    @property
    def memory(self) -> str:
        return (self.path / "MEMORY.md").read_text()

    def lines(self) -> int:
        return self.memory.count("\n")

    def archived(self) -> list[str]:
        """The pruned entries that can be restored."""
        found = []
        for file in sorted(self.path.glob("archive/pruned-*.md")):
            archive = read_archive(file.read_bytes())
            assert not archive.damaged
            found += [entry.text for entry in archive.entries]
        return found


@pytest.mark.slow
def test_it_loses_nothing_and_keeps_every_file_within_its_limit(home: Home, tmp_path: Path) -> None:
    home = Home(home.root, EAGER_PRUNING)
    root = make_project(tmp_path / "p", *ROLES)
    roles = [RoleFiles(root, name) for name in ROLES]
    principles = protected_entries(2)
    for role in roles:
        text = MEMORY_HEADER + principles + "".join(learning_text(f"learning {n}", age=200 + n) for n in range(11))
        (role.path / "MEMORY.md").write_text(text)
    home.run("add", root)
    moments = random.Random(7)
    running = start_daemon(home)
    try:
        # A first prune of a few lines is not held, and neither are later ones.
        until(lambda: all(role.lines() <= LIMIT for role in roles), "the first prune")
        with FindingsStorm([root], 7) as storm:
            for _ in range(4):
                pruned = sum(len(role.archived()) for role in roles) + moments.randint(1, 30)
                until(lambda p=pruned: sum(len(r.archived()) for r in roles) >= p, "more to be pruned")  # type: ignore[misc]
                running.kill()
                running = start_daemon(home)
        until(lambda: not remaining_findings(root), "all findings to be folded in")
        until(lambda: all(role.lines() <= LIMIT for role in roles), "files within their limit")
        until(lambda: home.json("status")["queue"]["queued"] == 0, "the queue to be empty")
    finally:
        if running.process.poll() is None:
            running.stop()

    kept = [(role.memory, "".join(role.archived())) for role in roles]
    everywhere = "".join(memory + archive for memory, archive in kept)
    told = [f"Pattern: {title}\n" for _, title in storm.acknowledged]
    told += [f"Pattern: learning {n}\n" for n in range(11)]
    assert [title for title in told if title not in everywhere] == []
    assert [title for title in told if any(memory.count(title) > 1 for memory, _ in kept)] == []
    assert all(memory.startswith(MEMORY_HEADER) and principles in memory for memory, _ in kept)
    assert len(storm.acknowledged) > 30
    assert finding_text("Storm 0").splitlines()[-1] in everywhere
