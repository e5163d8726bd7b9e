"""What a service file has to record, because a supervisor starts us without the shell's environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from echod.service.errors import ServiceError

_NAMES = ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
"""They decide where memory, settings and state are: a service without them would look elsewhere."""

_PREFIX = "ECHOD_"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The command that runs the daemon in the foreground, with absolute paths, and its environment."""

    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]


def record(python: Path, environ: Mapping[str, str]) -> Recorded:
    """Record how this installation is run.

    Args:
        python: the interpreter that runs us (`sys.executable`); its symlinks make up a virtual environment, so they
            are kept.
        environ: the environment of whoever installs.

    Raises:
        ServiceError: a value cannot be written into a service file.
    """
    script = python.parent / "echod"
    command = (str(script), "run") if os.access(script, os.X_OK) else (str(python), "-m", "echod", "run")
    chosen = {
        name: value for name, value in sorted(environ.items()) if value and (name in _NAMES or name.startswith(_PREFIX))
    }
    for name, value in [*chosen.items(), *(("The path of echod", part) for part in command)]:
        if any(ord(character) < ord(" ") for character in value):
            raise ServiceError(f"{name} holds a line break or control character; a service file cannot hold it.")
    return Recorded(command, tuple(chosen.items()))
