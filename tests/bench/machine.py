"""On what and when a run was measured: figures of two machines are no comparison."""

from __future__ import annotations

import datetime as dt
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from tests.bench.reference import loop, timed

_RUNS = 15


def describe_machine() -> Mapping[str, str]:
    """The lines above the table."""
    return {
        "date": f"{dt.datetime.now().astimezone():%Y-%m-%d %H:%M}",
        "revision": _revision(),
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "processors": f"{os.cpu_count()} x {_processor()}",
        "disk": _file_system(Path(tempfile.gettempdir())),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "python -c pass": f"{median(timed(_bare) for _ in range(_RUNS)) * 1000:.1f} ms",
        "calibration loop": f"{median(timed(loop) for _ in range(_RUNS)) * 1000:.1f} ms",
        "load at the start": f"{os.getloadavg()[0]:.1f}",
    }


def _bare() -> None:
    subprocess.run([sys.executable, "-c", "pass"], check=True)


def _revision() -> str:
    """The commit, and whether anything was changed since; "unknown" outside a repository."""
    found = _command_output("git", "describe", "--always", "--dirty", "--abbrev=12")
    return found or "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


def _file_system(path: Path) -> str:
    return _command_output("stat", "--file-system", "--format=%T", str(path)) or "unknown"


def _command_output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
