"""Build the wheel and the source distribution, install each into fresh environments, and use them as a newcomer would.

Usage: python -m tests.packaging.wheel [PYTHON]...   (default: every python3.11 to python3.14 on the PATH that runs)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import echod

ROOT = Path(__file__).parents[2]
MINOR_VERSIONS = (11, 12, 13, 14)
REQUIRED_FILES = (
    "echod/py.typed",
    "echod/_share/systemd/echod.service",
    "echod/_share/launchd/local.echod.plist",
    "echod/claude/plugin/hooks/hooks.json",
    "echod/claude/mcp-plugin/.mcp.json",
)
MANUAL = f"echod_memory-{echod.__version__}.data/data/share/man/man1/echod.1"
_FINDING = "### [2026-11-20] Pattern: Close what you open\n\n- **confidence**: 0.8\n- Use a context manager.\n"


class PackagingError(Exception):
    """A distribution is not right. The text contains the command and its output."""


class Distributions(NamedTuple):
    """The two files that are released."""

    wheel: Path
    source: Path


def build(directory: Path) -> Distributions:
    """Build both distributions from the checkout into `directory`, in isolated environments."""
    _run([sys.executable, "-m", "build", "--outdir", str(directory), str(ROOT)])
    (wheel,), (source,) = directory.glob("*.whl"), directory.glob("*.tar.gz")
    return Distributions(wheel, source)


def check_wheel(wheel: Path) -> None:
    """Check that the wheel has the version, the data files and nothing but the package.

    Raises:
        PackagingError: it does not.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    metadata = f"echod_memory-{echod.__version__}.dist-info/"
    required = (*REQUIRED_FILES, f"{metadata}licenses/LICENSE", MANUAL)
    missing = [name for name in required if name not in names]
    foreign = [name for name in names if name != MANUAL and not name.startswith(("echod/", metadata))]
    if missing or foreign:
        raise PackagingError(f"{wheel.name}: missing {missing}, foreign {foreign}")


def find_pythons() -> tuple[str, ...]:
    """Return the supported interpreters on the PATH that run; a version manager's shim may not."""
    found = []
    for minor in MINOR_VERSIONS:
        path = shutil.which(f"python3.{minor}")
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            found.append(path)
    return tuple(found)


def check_installed(distribution: Path, python: str, directory: Path) -> None:
    """Install a distribution into a fresh environment and walk through the first steps of a user.

    Raises:
        PackagingError: a step fails.
    """
    environment, home = directory / "environment", directory / "home"
    project = home / "project"
    project.mkdir(parents=True)
    _run([python, "-m", "venv", str(environment)])
    _run([str(environment / "bin/python"), "-m", "pip", "install", "--quiet", str(distribution)])
    _run([str(environment / "bin/python"), "-m", "pip", "check"])
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("ECHOD_", "XDG_", "PYTHON"))},
        "HOME": str(home),
        "PATH": f"{environment / 'bin'}:/usr/bin:/bin",
        "ECHOD_STATE_DIR": str(directory / "state"),
        "ECHOD_RUNTIME_DIR": str(directory / "run"),
        "ECHOD_QUIET_SECONDS": "0",
    }
    if not (environment / "share/man/man1/echod.1").is_file():
        raise PackagingError("the manual page is not where `man` looks for it")
    version = _run(["echod", "--version"], environ, home).split()
    if version[:2] != ["echod", echod.__version__]:
        raise PackagingError(f"echod --version prints {version}")
    _run(["echod", "init", str(project)], environ, home)
    _run(["echod", "remember", "Deploy only on Mondays"], environ, project)
    role = project / ".rune/echoes/reviewer"
    role.mkdir(parents=True, exist_ok=True)
    (role / "ward-findings.md").write_text(_FINDING)
    os.utime(role / "ward-findings.md", (0, 0))
    _run(["echod", "run", "--once", str(project)], environ, home)
    if "Close what you open" not in (role / "MEMORY.md").read_text():
        raise PackagingError("run --once did not add the finding to the memory")
    _run(["echod", "undo", "--last", "--yes"], environ, project)
    _run(["echod", "status"], environ, home, codes=(3,))  # no service is running
    _run(["echod", "prune", "--dry-run"], environ, project)
    _run(["echod", "hook", "session-start"], environ, home)


def main(pythons: Sequence[str]) -> int:
    """Check the distributions with these interpreters. Return the exit code."""
    with tempfile.TemporaryDirectory(prefix="echod-wheel-") as name:
        directory = Path(name)
        distributions = build(directory / "dist")
        check_wheel(distributions.wheel)
        for number, (distribution, python) in enumerate(_plan(distributions, pythons)):
            print(f"{distribution.name} with {python} ... ", end="", flush=True)
            check_installed(distribution, python, directory / str(number))
            print("ok")
    absent = [f"3.{minor}" for minor in MINOR_VERSIONS if not any(python.endswith(f".{minor}") for python in pythons)]
    if absent:
        print(f"Not checked, because they are not installed here: Python {', '.join(absent)}.")
    return 0


def _plan(distributions: Distributions, pythons: Sequence[str]) -> Iterator[tuple[Path, str]]:
    for python in pythons:
        yield distributions.wheel, python
    yield distributions.source, pythons[0]


def _run(
    command: Sequence[str],
    environ: dict[str, str] | None = None,
    directory: Path = ROOT,
    codes: tuple[int, ...] = (0,),
) -> str:
    path = None if environ is None else environ["PATH"]
    program = shutil.which(command[0], path=path) or command[0]
    done = subprocess.run(
        [program, *command[1:]], env=environ, cwd=directory, capture_output=True, text=True, check=False
    )
    if done.returncode not in codes:
        raise PackagingError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or find_pythons()))
