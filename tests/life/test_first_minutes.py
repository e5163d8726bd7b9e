"""The first five minutes of the README, typed into a real terminal, with echod installed from its wheel.

At two widths, with and without colour, and with a real systemd user manager where one can run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from filelock import FileLock

from echod.cli.commands.demo import long_memory
from tests.packaging.wheel import ROOT, check_wheel
from tests.service.systemd_manager import running_manager, skip_reason
from tests.support import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_TYPING_SECONDS = 120.0


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The directory with the `echod` of an environment in which the wheel is installed. Built once for all workers."""
    base = tmp_path_factory.getbasetemp()
    base = base if worker_id == "master" else base.parent
    environment = base / "installed"
    with FileLock(base / "installed.lock"):
        if not environment.exists():
            _install_wheel(base / "wheel", environment)
    return environment / "bin"


def _install_wheel(directory: Path, environment: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(directory), str(ROOT)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if built.returncode:
        pytest.skip(f"the wheel cannot be built here: {built.stderr[-200:]}")
    (wheel,) = directory.glob("*.whl")
    check_wheel(wheel)
    unfinished = environment.with_name("unfinished")
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(unfinished)], check=True, timeout=300)
    unfinished.rename(environment)  # its scripts are written by what follows, with the final path
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([str(environment / "bin/python"), *install], check=True, timeout=300)
    # The dependencies are those of the tests. A path in such a file is searched, but its own such files are not read,
    # so the checkout stays out of sight.
    (site_packages,) = environment.glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")


class Terminal:
    """A terminal in which a shell waits for commands."""

    def __init__(
        self, environ: Mapping[str, str], memory: Path, columns: int, *, colour: bool, enter: tuple[str, ...] = ()
    ) -> None:
        tmux = shutil.which("tmux")
        if tmux is None:
            pytest.skip("there is no tmux")
        self.columns, self.colour, self.memory = columns, colour, memory
        self._tmux = [tmux, "-S", str(Path(environ["HOME"]) / "tmux")]
        self._number = 0
        shell_environ = {**environ, "PS1": "$ ", "TERM": "xterm", "ENV": "", "NO_COLOR": "" if colour else "1"}
        start = [
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            str(columns),
            "-y",
            "200",
            "-c",
            str(memory.parents[3]),
            "sh",
        ]
        subprocess.run([*enter, *self._tmux, *start], env=shell_environ, check=True, timeout=60)

    def type(self, command: str, code: int = 0) -> str:
        """Run a command to its end, with a yes to each question. Return its output without styles."""
        self._number += 1
        self._keys("-l", f"clear; {command}; echo en''d{self._number} $?")
        self._keys("Enter")
        end = re.compile(rf"^end{self._number} (\d+)$", re.MULTILINE)
        until(lambda: end.search(self.screen()) or "[y/N]" in self.screen(), command, _TYPING_SECONDS)
        if end.search(self.screen()) is None:
            self._keys("y", "Enter")
            until(lambda: end.search(self.screen()), command, _TYPING_SECONDS)
        screen = self.screen()
        found = end.search(screen)
        assert found is not None
        assert int(found[1]) == code, screen
        assert max(map(len, screen.splitlines())) <= self.columns, screen
        assert "python" not in screen, "a name of the machinery is on the screen"
        styles = set(_STYLE.findall(self.screen("-e")))
        assert self.colour or not styles, styles
        return screen

    def screen(self, styles: str = "-J") -> str:
        """Return the screen, by default without styles and with wrapped lines joined."""
        done = subprocess.run(
            [*self._tmux, "capture-pane", "-p", styles], capture_output=True, text=True, check=True, timeout=60
        )
        return "\n".join(line.rstrip() for line in done.stdout.splitlines())

    def close(self) -> None:
        """End the terminal."""
        subprocess.run([*self._tmux, "kill-server"], check=False, timeout=60)

    def _keys(self, *keys: str) -> None:
        subprocess.run([*self._tmux, "send-keys", *keys], check=True, timeout=60)


@pytest.fixture(params=["colour", "no colour"])
def colour(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "colour")


@pytest.fixture(params=[80, 120])
def terminal(request: pytest.FixtureRequest, tmp_path: Path, programs: Path, *, colour: bool) -> Iterator[Terminal]:
    """A terminal of a user who has nothing but echod and one project with a long memory."""
    names = ("LANG", "LC_ALL", "TZ")
    environ = {name: os.environ[name] for name in names if name in os.environ}
    environ["PATH"] = f"{programs}:/usr/bin:/bin"
    enter: tuple[str, ...] = ()
    with ExitStack() as stack:
        if skip_reason():
            home = tmp_path
            environ |= {"HOME": str(home), "XDG_RUNTIME_DIR": ""}
        else:
            manager = stack.enter_context(running_manager({}))
            home, enter = manager.home, manager.enter
            environ = {**manager.environ, **environ}
        memory = home / "src/shop/.rune/echoes/planner/MEMORY.md"
        memory.parent.mkdir(parents=True)
        memory.write_text(long_memory())
        terminal = Terminal(environ, memory, request.param, colour=colour, enter=enter)
        stack.callback(terminal.close)
        yield terminal


def test_a_stranger_reaches_a_first_undone_prune(terminal: Terminal) -> None:
    memory = terminal.memory
    before = memory.read_bytes()

    assert "Preview:  echod prune --dry-run" in terminal.type("echod add ~/src/shop")
    assert "338/150 lines OVER" in terminal.type("echod show")
    plan = terminal.type("echod prune --dry-run")
    entry = re.findall(r"^  archive +\S+ +([0-9a-f]{12})", plan, re.MULTILINE)[0]
    assert "Would be archived by the next prune because" in terminal.type(f"echod explain {entry}")
    assert "until" in terminal.type(f"echod pin {entry}")
    assert memory.read_bytes() == before, "only a prune changes the file"
    assert re.search(r"338 -> 14\d lines", terminal.type("echod prune"))
    assert memory.read_bytes() != before
    log = terminal.type("echod log")
    number = re.findall(r"^ *(\d+) .*prune planner", log, re.MULTILINE)[0]
    assert f"job {number}" in terminal.type(f"echod log {number} | head -3").lower()
    undone = terminal.type("echod undo --last")
    assert "Undone, as job" in undone
    assert "entries are pinned until" in undone, "or a second prune that does nothing is a surprise"
    assert memory.read_bytes() == before
    assert "remember" in terminal.type("echod remember 'Use uv, never pip.'; echod log")
    if skip_reason():
        assert terminal.type("echod status", code=3).splitlines()[0] == "echod is not running"
        assert ("\x1b[31m" in terminal.screen("-e")) is terminal.colour
        return
    installed = " ".join(terminal.type("echod service install").split())
    assert "Installed ~/.config/systemd/user/echod.service. The service is running (healthy" in installed
    assert "echod is healthy" in terminal.type("echod status")
    assert ("\x1b[32m" in terminal.screen("-e")) is terminal.colour
    assert "! " not in terminal.screen()
    terminal.type("echod doctor")
    terminal.type("echod remove ~/src/shop --purge --yes; echod service uninstall")
    terminal.type("echod status", code=3)
