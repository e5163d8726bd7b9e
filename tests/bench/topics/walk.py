"""Through how many modules a reader follows a command or a finding: those whose functions are called."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.figures import Comparison, Figures, Row, Threshold
from tests.bench.workspace import Workspace
from tests.support import Home, finding_text, make_project, until

_ENTRIES = 60
_WAIT_SECONDS = 60


def measure(space: Workspace) -> Figures:
    """Count the modules that `status`, `prune` and a finding's way through the service enter."""
    home = Home(space.directory("home"), {"ECHOD_QUIET_SECONDS": "0", "ECHOD_DEBOUNCE_SECONDS": "0.1"})
    project = make_project(space.disk / "project", "reviewer")
    memory = project / ".rune/echoes/reviewer/MEMORY.md"
    entries = [finding_text(f"Lesson {number} of many") + "more\n" * 4 for number in range(_ENTRIES)]
    memory.write_text("# Reviewer Memory\n\n" + "\n".join(entries))
    home.run("add", str(project))
    home.echod("status")  # the first one inspects the files, every later one only those that changed
    walks = {
        "echod status, no service, files unchanged": (_trace(space, home, "status"), 50),
        "echod prune": (_trace(space, home, "prune", str(project), "--yes"), 100),
        "a finding, through the service": (_trace_finding(space, home, project), 130),
    }
    return Figures(
        tuple(
            Row(f"modules entered by {name}", len(files), "", bar=Threshold(Comparison.AT_MOST, most))
            for name, (files, most) in walks.items()
        )
    )


def _command(output: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.bench.trace_walk", str(output), *arguments]


def _environ(home: Home) -> dict[str, str]:
    return {**home.environ, "PYTHONPATH": str(Path(__file__).parents[3])}


def _trace(space: Workspace, home: Home, *arguments: str) -> list[str]:
    output = space.disk / f"walk-{arguments[0]}.json"
    subprocess.run(_command(output, *arguments), env=_environ(home), cwd=home.root, check=False, capture_output=True)
    files: list[str] = json.loads(output.read_text())
    return files


def _trace_finding(space: Workspace, home: Home, project: Path) -> list[str]:
    output = space.disk / "walk-run.json"
    process = subprocess.Popen(
        _command(output, "run"), env=_environ(home), cwd=home.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until((home.runtime / "heartbeat.json").exists, "the service's heartbeat", _WAIT_SECONDS)
        findings = project / ".rune/echoes/reviewer/ward-findings.md"
        findings.write_text(finding_text("Close what you open"))
        os.utime(findings, (time.time() - 60, time.time() - 60))
        until(lambda: not findings.exists(), "the finding to be consolidated", _WAIT_SECONDS)
        process.send_signal(signal.SIGTERM)
        process.wait(_WAIT_SECONDS)
    finally:
        process.kill()
    files: list[str] = json.loads(output.read_text())
    return files
