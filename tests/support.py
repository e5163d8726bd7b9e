"""Helpers for the tests of several packages: a project on disk, a home for echod's own files, commands, a real daemon.

A test waits for a condition, never for a fixed time.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

TIMEOUT_SECONDS = 30.0


def corpus(*parts: str) -> Path:
    """Return a file or directory of the corpus. Without a corpus the test is skipped."""
    root = os.environ.get("MEMORY_CORPUS")
    if not root:
        pytest.skip("MEMORY_CORPUS is not set")
    path = Path(root).joinpath(*parts)
    if not path.exists():
        pytest.skip(f"the corpus has no {path.name}")
    return path


def until(condition: Callable[[], object], description: str, seconds: float = TIMEOUT_SECONDS) -> None:
    """Wait until `condition` returns something true. Fail with `description` at the timeout."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {seconds:g} s in vain for: {description}")
        time.sleep(0.02)


def finding_text(title: str, text: str = "", *, date: str = "2026-11-20", layer: str = "inscribed") -> str:
    """Return a finding in the canonical form."""
    return (
        f"### [{date}] Pattern: {title}\n"
        f"- **layer**: {layer}\n"
        "- **source**: rune:review 7be10d44\n"
        "- **confidence**: 0.8\n"
        f"- **evidence**: `src/{title.rsplit(maxsplit=1)[-1].lower()}.py:1-5`\n"
        f"- **verified**: {date}\n"
        "- **supersedes**: none\n"
        f"- {text or f'What was learnt about {title}.'}\n"
    )


NO_PRUNING = {"ECHOD_MEMORY_LINE_LIMIT": "100000"}
"""Settings for tests in which every entry must stay in the memory file."""


@dataclass(frozen=True)
class Home:
    """A home directory with echod's own files, and a way to run echod in it."""

    root: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ECHOD_", "CLAUDE_"))}
        return {
            **inherited,
            "HOME": str(self.root),
            "ECHOD_STATE_DIR": str(self.state),
            "ECHOD_RUNTIME_DIR": str(self.runtime),
            "CLAUDE_CONFIG_DIR": str(self.root / "claude"),
            "NO_COLOR": "1",
            "ECHOD_QUIET_SECONDS": "0",
            "ECHOD_DEBOUNCE_SECONDS": "0.05",
            "ECHOD_DEBOUNCE_MAX_SECONDS": "0.5",
            **self.settings,
        }

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def runtime(self) -> Path:
        return self.root / "run"

    def echod(
        self, *arguments: object, before: tuple[str, ...] = (), cwd: Path | None = None, **changed: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end in `cwd` (default: the home). `before` is a prefix such as setpriv or strace."""
        return subprocess.run(
            [*before, sys.executable, "-m", "echod", *map(str, arguments)],
            env={**self.environ, **changed},
            cwd=cwd or self.root,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def json(self, *arguments: object) -> dict[str, Any]:
        """Return the JSON that a command prints."""
        completed = self.echod(*arguments, "--json")
        assert completed.stdout, completed.stderr
        found: dict[str, Any] = json.loads(completed.stdout)
        return found

    def run(self, *arguments: object) -> str:
        """Run a command that must succeed. Return its output."""
        result = self.echod(*arguments)
        assert result.returncode == 0, f"{result.stdout}{result.stderr}"
        return result.stdout


@dataclass
class Daemon:
    """A running service."""

    home: Home
    process: subprocess.Popen[str]
    log: Path

    def kill(self) -> None:
        """Kill the process with SIGKILL and reap it."""
        self.process.kill()
        self.process.wait(TIMEOUT_SECONDS)

    def stop(self) -> int:
        """Send SIGTERM. Return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(TIMEOUT_SECONDS)


def start_daemon(home: Home, seconds: float = TIMEOUT_SECONDS) -> Daemon:
    """Start the real service and wait until it answers, which takes longer with many projects."""
    log = home.root / "service.log"
    with log.open("a") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "echod", "run"],
            env=home.environ,
            cwd=home.root,
            stdout=stderr,
            stderr=stderr,
            text=True,
        )
    daemon = Daemon(home, process, log)
    heartbeat = home.runtime / "heartbeat.json"

    def is_up() -> bool:
        if process.poll() is not None:
            pytest.fail(f"the service ended with {process.returncode}:\n{log.read_text()}")
        with contextlib.suppress(OSError, ValueError, KeyError):
            return bool(json.loads(heartbeat.read_text())["pid"] == process.pid)
        return False

    until(is_up, "the service's heartbeat", seconds)
    return daemon


@contextlib.contextmanager
def running_daemon(home: Home, seconds: float = TIMEOUT_SECONDS) -> Iterator[Daemon]:
    """Run a service, and end it in every case."""
    running = start_daemon(home, seconds)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.kill()


def make_project(root: Path, *roles: str, store: str = ".rune/echoes") -> Path:
    """Create a project with a store and roles."""
    for role in roles or ("reviewer",):
        (root / store / role).mkdir(parents=True)
    (root / store).mkdir(parents=True, exist_ok=True)
    return root


def run_in_child(work: Callable[[], object]) -> int:
    """Run `work` in a forked process. Return its exit status: 0 done, 137 killed, 1 failed with a traceback."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
