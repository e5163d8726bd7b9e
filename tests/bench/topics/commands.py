"""Measure the wall-clock time of commands as multiples of a Python that does nothing, run in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.bench.figures import Figures, Row, Threshold, below, row
from tests.bench.household import BenchHome, add_job_history, idle_daemon, make_bench_home, make_globbed_home
from tests.bench.reference import rounds
from tests.bench.workspace import Workspace
from tests.hooks.events import teammate_event

_PROJECTS = 100
_ROUNDS, _SECONDS = 31, 8.0
_WAITING = 1000
_BARE = (sys.executable, "-c", "pass")
_ECHOD = str(Path(sys.executable).with_name("echod"))
_HOOK = (_ECHOD, "hook", "task-completed")
_STATUS = (_ECHOD, "status")
_IMPORTING = ("status", "search", "explain", "remember", "prune", "run")
"""One command of each kind; those of a kind load the same."""


def measure(space: Workspace) -> Figures:
    """The hook, the status with and without a daemon, and, to inform, what else is typed often."""
    home = make_bench_home(space, _PROJECTS)
    add_job_history(home)
    project = space.disk / "projects/p0"
    event = json.dumps(teammate_event(project)).encode()
    rows = list(_compare(home, event, {"echod hook task-completed": (_HOOK, below(2))}))
    spool = home.state / "spool"
    for number in range(_WAITING):
        (spool / f"{number:020d}-0000002-1.stop.json").touch()
    rows += _compare(home, event, {f"echod hook task-completed, {_WAITING:,} events waiting": (_HOOK, below(2))})
    for file in spool.iterdir():
        file.unlink()
    with idle_daemon(home):
        rows += _compare(
            home,
            b"",
            {
                f"echod status, daemon up, {_PROJECTS} projects": (_STATUS, below(10)),
                "echod gate": ((_ECHOD, "gate", str(project)), None),
                "echod explain --help": ((_ECHOD, "explain", "--help"), None),
            },
        )
    rows += _compare(home, b"", {f"echod status, daemon down, {_PROJECTS} projects": (_STATUS, below(25))})
    globbed_space = space.below("globbed")
    globbed = make_globbed_home(globbed_space, _PROJECTS)
    add_job_history(globbed, sorted((globbed_space.disk / "projects").iterdir()))
    rows += _compare(
        globbed, b"", {f"echod status, daemon down, {_PROJECTS} projects named by one glob": (_STATUS, below(25))}
    )
    return Figures((*rows, *_imports(home)))


def _imports(home: BenchHome) -> Iterator[Row]:
    """What a command imports before it does anything: `--help` loads its module and what that needs."""
    for name in _IMPORTING:
        command = (sys.executable, "-X", "importtime", "-m", "echod", name, "--help")
        done = subprocess.run(command, env=home.environ, cwd=home.root, capture_output=True, text=True, check=True)
        modules = [line for line in done.stderr.splitlines() if line.startswith("import time:")][1:]
        own = sum(line.rpartition("|")[2].strip().partition(".")[0] == "echod" for line in modules)
        yield Row(f"modules imported by echod {name} (of echod: {own})", len(modules), "")


def _compare(
    home: BenchHome, payload: bytes, commands: Mapping[str, tuple[Sequence[str], Threshold | None]]
) -> list[Row]:
    bare: list[float] = []
    took: dict[str, list[float]] = {name: [] for name in commands}
    for number in rounds(_ROUNDS + 1, _SECONDS):
        reference = _seconds(_BARE, payload, home)
        each = {name: _seconds(command, payload, home) for name, (command, _) in commands.items()}
        if number == 0:
            continue  # what was not compiled yet is now
        bare.append(reference)
        for name, seconds in each.items():
            took[name].append(seconds)
    return [
        row(
            name,
            [seconds / reference for seconds, reference in zip(took[name], bare, strict=True)],
            "x",
            bar=bar,
            note=f"{_median_ms(took[name]):.0f} ms against {_median_ms(bare):.1f} ms of python -c pass",
        )
        for name, (_, bar) in commands.items()
    ]


def _median_ms(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) // 2] * 1000


def _seconds(command: Sequence[str], payload: bytes, home: BenchHome) -> float:
    environ = {name: value for name, value in home.environ.items() if not name.startswith("PYTHON")}
    environ |= {name: value for name, value in os.environ.items() if name == "PYTHONPATH"}
    begin = time.perf_counter()
    done = subprocess.run(command, input=payload, env=environ, cwd=home.root, capture_output=True, check=False)
    took = time.perf_counter() - begin
    if done.returncode not in (0, 3):  # 3: status, and no daemon runs
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.decode()}")
    return took
