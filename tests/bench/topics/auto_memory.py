"""How long examining, repairing and copying a directory of 900 files of auto memory takes."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from echod.auto_memory.copies import MemoryCopies
from echod.auto_memory.places import default_directory, read_directory
from echod.memory.auto_memory.checks import check_directory
from echod.memory.auto_memory.repair import plan_repair
from tests.bench.figures import Figures, below, row
from tests.bench.workspace import Workspace
from tests.support import Home

_FILES, _WORDS, _RUNS = 900, 4_000, 5
_NOW = 1_795_000_000.0


def measure(space: Workspace) -> Figures:
    """Measure each part, and the command as a whole."""
    home = Home(space.disk / "auto-memory")
    project = home.root / "project"
    (project / ".git").mkdir(parents=True)
    path = default_directory(home.root / "claude", project)
    write_memory(path)
    directory = read_directory(path)
    findings = check_directory(directory, _NOW)
    copies = MemoryCopies(home.root / "copies", path)
    note = f"{_FILES} files, {sum(len(one.data) for one in directory.notes) // 1024:,} KiB, {len(findings)} findings"
    first_copy = _milliseconds(lambda: copies.refresh(_NOW), 1)
    return Figures(
        (
            row(
                "examine the directory",
                _milliseconds(lambda: check_directory(read_directory(path), _NOW)),
                "ms",
                note=note,
                bar=below(2_000),
            ),
            row("plan the repair of its index", _milliseconds(lambda: plan_repair(read_directory(path))), "ms"),
            row("copy it for the first time", first_copy, "ms"),
            row("see that nothing changed since the copy", _milliseconds(lambda: copies.refresh(_NOW)), "ms"),
            row("echod doctor --auto-memory", _milliseconds(lambda: _doctor(home, project)), "ms", bar=below(2_000)),
        )
    )


def write_memory(path: Path) -> None:
    """Write files with rare and frequent words, and an index that the host cuts."""
    path.mkdir(parents=True)
    chance = random.Random(3)
    words = [f"word{number}" for number in range(_WORDS)]
    weights = [1 / (number + 5) for number in range(_WORDS)]

    def text(count: int) -> str:
        return " ".join(chance.choices(words, weights, k=count))

    lines = []
    for number in range(_FILES):
        front = f"---\nname: fact-{number}\ndescription: {text(12)}\nmetadata:\n  type: project\n---\n"
        body = "\n\n".join(text(60) for _ in range(4))
        (path / f"fact-{number}.md").write_text(f"{front}{body}\n\nSee [[fact-{(number + 1) % _FILES}]].\n")
        lines.append(f"- [Fact {number}](fact-{number}.md) {text(8)}\n")
    (path / "MEMORY.md").write_text("".join(lines))


def _milliseconds(action: Callable[[], object], runs: int = _RUNS) -> list[float]:
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        action()
        times.append((time.perf_counter() - started) * 1000)
    return times


def _doctor(home: Home, project: Path) -> None:
    command = [sys.executable, "-m", "echod", "doctor", "--auto-memory", str(project)]
    done = subprocess.run(command, env=home.environ, cwd=home.root, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
