"""The first five minutes of the README, typed into a real terminal at two widths, with and without colour."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from echod.cli.commands.demo import long_memory
from tests.support import Home, until

pytestmark = pytest.mark.slow


class Terminal:
    """A terminal in which a shell waits for commands."""

    def __init__(self, home: Home, project: Path, columns: int, *, colour: bool) -> None:
        tmux = shutil.which("tmux")
        if tmux is None:
            pytest.skip("there is no tmux")
        self._tmux = [tmux, "-S", str(home.root / "tmux")]
        self._environ = {**home.environ, "PS1": "$ ", "TERM": "xterm", "ENV": "", "NO_COLOR": "" if colour else "1"}
        self._directory, self._number = project, 0
        start = ["-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", "200", "sh"]
        subprocess.run([*self._tmux, *start], env=self._environ, cwd=project, check=True, timeout=60)

    def type(self, command: str) -> str:
        """Run a command of echod to its end. Return its output with its styles."""
        self._number += 1
        line = f"clear; {sys.executable} -m echod {command}; echo en''d{self._number} $?"
        self._keys("-l", line)
        self._keys("Enter")
        until(lambda: re.search(rf"^(end{self._number} |.*\[y/N\])", self.screen(), re.MULTILINE), command)
        if f"end{self._number} " not in self.screen():
            self._keys("y", "Enter")
            until(lambda: f"\nend{self._number} " in self.screen(), command)
        return self.screen(styles="-e")

    def screen(self, styles: str = "-J") -> str:
        """Return the screen, by default without styles and with wrapped lines joined."""
        done = subprocess.run(
            [*self._tmux, "capture-pane", "-p", styles], capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout

    def close(self) -> None:
        """End the terminal."""
        subprocess.run([*self._tmux, "kill-server"], check=False, timeout=60)

    def _keys(self, *keys: str) -> None:
        subprocess.run([*self._tmux, "send-keys", *keys], check=True, timeout=60)


@pytest.fixture(params=[(80, True), (120, False)], ids=["80 columns", "120 columns without colour"])
def terminal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Terminal]:
    columns, colour = request.param
    project = tmp_path / "shop"
    (project / ".rune/echoes/planner").mkdir(parents=True)
    (project / ".rune/echoes/planner/MEMORY.md").write_text(long_memory())
    terminal = Terminal(Home(tmp_path), project, columns, colour=colour)
    terminal.columns, terminal.colour = columns, colour  # type: ignore[attr-defined]
    yield terminal
    terminal.close()


def test_a_stranger_reaches_a_first_undone_prune(terminal: Terminal, tmp_path: Path) -> None:
    memory = tmp_path / "shop/.rune/echoes/planner/MEMORY.md"
    before = memory.read_text()

    assert "Preview:  echod prune --dry-run" in terminal.type("add .")
    assert "338/150 lines OVER" in re.sub(r"\x1b\[[0-9;]*m", "", terminal.type("show"))
    plan = terminal.type("prune --dry-run")
    entry = re.findall(r"^  archive +\S+ +([0-9a-f]{12})", plan, re.MULTILINE)[0]
    assert "Would be archived by the next prune because" in terminal.type(f"explain {entry}")
    assert "338 -> 144 lines" in terminal.type("prune")
    assert memory.read_text() != before
    assert "prune planner" in terminal.type("log")
    assert "Undone, as job 2" in terminal.type("undo --last")
    assert memory.read_text() == before
    status = terminal.type("status")
    assert ("\x1b[31m" in status) is terminal.colour  # type: ignore[attr-defined]
    plain = terminal.screen().splitlines()
    assert "echod is not running" in plain[0]
    assert max(map(len, plain)) <= terminal.columns  # type: ignore[attr-defined]
