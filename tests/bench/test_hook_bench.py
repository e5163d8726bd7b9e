"""What a hook costs an agent, against a bare interpreter."""

from __future__ import annotations

import compileall
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import echod
from tests.hooks.events import teammate

pytestmark = pytest.mark.bench

ROUNDS = 60
FULL = 1000


def milliseconds(command: Sequence[str], event: bytes, environ: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, input=event, env=environ, check=True, capture_output=True)
    return (time.perf_counter() - start) * 1000


@pytest.mark.parametrize("waiting", [0, FULL])
def test_a_hook_against_a_bare_interpreter(tmp_path: Path, waiting: int) -> None:
    package = Path(echod.__file__).parent
    compileall.compile_dir(package / "hooks", quiet=1)
    compileall.compile_file(package / "cli/entry.py", quiet=1)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ECHOD_"))}
    environ["ECHOD_STATE_DIR"] = str(tmp_path)
    (tmp_path / "spool").mkdir()
    for number in range(waiting):
        (tmp_path / "spool" / f"{number:020d}-0000002-1.stop.json").touch()
    event = json.dumps(teammate(tmp_path)).encode()
    script = Path(sys.executable).with_name("echod")
    commands = {"python -c pass": [sys.executable, "-c", "pass"]}
    commands["echod hook"] = [str(script), "hook", "task-completed"]
    times: dict[str, list[float]] = {name: [] for name in commands}

    for _ in range(ROUNDS):  # in turn, so that a busy machine slows both
        for name, command in commands.items():
            times[name].append(milliseconds(command, event, environ))

    bare, hook = (statistics.median(times[name]) for name in commands)
    print(f"\nechod hook, {waiting} events waiting: {hook:.1f} ms, bare {bare:.1f} ms: {hook / bare:.2f} x (bar 2 x)")
    assert len(list((tmp_path / "spool").glob("*.json"))) == waiting + ROUNDS
