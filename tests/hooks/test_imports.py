"""A hook loads almost nothing, because the agent waits for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hooks.events import minimal_environ

OURS = {
    "echod",
    "echod.cli",
    "echod.cli.main",
    "echod.hooks",
    "echod.hooks.run",
    "echod.hooks.spool",
}
HEAVY = {"json", "re", "typing", "enum", "pathlib", "dataclasses", "contextlib", "functools", "logging", "subprocess"}

PROGRAM = """
import os, sys
before = set(sys.modules)
out = os.dup(1)
def end(code):
    new = sorted(set(sys.modules) - before)
    import json
    os.write(out, json.dumps([code, new]).encode())
    raise SystemExit(code)
os._exit = end
sys.argv = ["echod", "hook", sys.argv[1]]
from echod.cli.main import main
main()
"""


@pytest.mark.parametrize("event", ["task-completed", "session-start", "stop"])
def test_a_hook_loads_only_these_modules(tmp_path: Path, event: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, event],
        input=b"{}",
        env=minimal_environ(tmp_path),
        capture_output=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )

    code, loaded = json.loads(done.stdout)
    ours = {name for name in loaded if name.partition(".")[0] == "echod"}
    others = {name.partition(".")[0] for name in loaded} - {"echod"}
    assert code == 0
    assert ours == OURS
    assert others <= set(sys.stdlib_module_names)
    assert others & HEAVY == set()
    assert len(loaded) <= len(OURS) + 4
