"""Describe how this copy of echod is installed: the path that survives an upgrade, and whether the copy will last.

A service file, a hook and git's configuration contain a path to echod that others call later. Package managers put a
link to the program into a directory of the user's PATH and keep that link across upgrades, while the path behind it may
contain a version. Runners such as `uvx` use environments that they delete later.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_TEMPORARY = {
    ("uv", "archive-v0"): "uvx",
    ("uv", "environments-v2"): "uvx",
    ("uv", "builds-v0"): "uvx",
    (".cache", "pipx"): "pipx run",
    ("Caches", "pipx"): "pipx run",
    ("pipx", ".cache"): "pipx run",
}
"""Two consecutive directories in the path of an environment that its runner deletes later, and the runner."""

_SHARED_LINK_DIRECTORIES = (Path("/opt/homebrew/bin"), Path("/home/linuxbrew/.linuxbrew/bin"), Path("/usr/local/bin"))


def program_command(python: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command that runs this installation, with absolute paths that survive an upgrade.

    `python` is `sys.executable`. Its symlinks are kept, because they make up a virtual environment. The result is a
    link to the script in a directory for such links (`~/.local/bin` is the one of uv and pipx), else the script beside
    the interpreter, else the interpreter with `-m echod`.
    """
    script = python.parent / "echod"
    if not os.access(script, os.X_OK):
        return (str(python), "-m", "echod")
    home = environ.get("HOME")
    own = (Path(home) / ".local" / "bin",) if home and Path(home).is_absolute() else ()
    target = os.path.realpath(script)
    for directory in (*own, *_SHARED_LINK_DIRECTORIES):
        link = directory / "echod"
        if os.path.realpath(link) == target and os.access(link, os.X_OK):
            return (str(link),)
    return (str(script),)


def temporary_runner(python: Path, environ: Mapping[str, str]) -> str | None:
    """Return the program whose temporary environment this is, such as `uvx`; None for an installation that lasts."""
    cache = environ.get("UV_CACHE_DIR")
    if cache and python.is_relative_to(cache):
        return "uvx"
    pairs = zip(python.parts, python.parts[1:], strict=False)
    return next((_TEMPORARY[pair] for pair in pairs if pair in _TEMPORARY), None)
