"""Environments of the other programs, made once and kept: `ECHOD_PEERS` names their directory, else the user's cache.

A program that cannot be installed is not measured, and the table says why.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.packaging.wheel import find_pythons

_SECONDS = 900
_MAX_REASON = 160


class InstallError(Exception):
    """A program cannot be installed or used here. The text is the reason, for the table."""


class Installed(NamedTuple):
    """A program in an environment of its own. `program` starts it."""

    name: str
    version: str
    program: Path


def scratch_directory() -> Path:
    """Return the directory of all environments."""
    if chosen := os.environ.get("ECHOD_PEERS"):
        return Path(chosen).absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache).absolute() / "echod-peers"


def install_python(package: str, script: str) -> Installed:
    """Install a Python package with the newest Python on the PATH.

    Raises:
        InstallError: it cannot be installed.
    """
    environment = scratch_directory() / package
    python = environment / "bin/python"
    if not (environment / "ready").exists():
        pythons = find_pythons()
        if not pythons:
            raise InstallError("there is no Python for it on the PATH")
        shutil.rmtree(environment, ignore_errors=True)
        run([pythons[-1], "-m", "venv", environment])
        run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package])
        (environment / "ready").touch()
    version = run([python, "-c", f"from importlib.metadata import version; print(version({package!r}))"])
    return Installed(package, version, environment / "bin" / script)


def install_node(package: str, script: str) -> Installed:
    """Install a package of Node.js. Nothing that it would run at its installation is run.

    Raises:
        InstallError: it cannot be installed.
    """
    environment = scratch_directory() / package.replace("/", "-")
    if not (environment / "ready").exists():
        if shutil.which("npm") is None:
            raise InstallError("there is no npm on the PATH")
        shutil.rmtree(environment, ignore_errors=True)
        environment.mkdir(parents=True)
        quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps", "--omit=optional")
        run(["npm", "install", "--prefix", environment, *quiet, package])
        (environment / "ready").touch()
    described = json.loads((environment / "node_modules" / package / "package.json").read_text())
    return Installed(package, described["version"], environment / "node_modules/.bin" / script)


def run(command: Sequence[str | Path], home: Path | None = None) -> str:
    """Run a command to its end and return its output.

    Raises:
        InstallError: it fails; the reason is the last line that it wrote.
    """
    environ = dict(os.environ) if home is None else {**os.environ, "HOME": str(home)}
    try:
        done = subprocess.run(
            command,
            env=environ,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(str(error)[:_MAX_REASON]) from error
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or [f"exit code {done.returncode}"]
        raise InstallError(lines[-1][:_MAX_REASON])
    return done.stdout.strip()
