"""The settings file as text: what it holds, and on which line a key stands. Knows no setting."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echod.errors import ConfigurationError, reason_of

_POSITION = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file that was read; one that does not exist holds nothing."""

    path: Path
    text: str
    values: Mapping[str, Any]

    def place_of(self, keys: Sequence[str]) -> str:
        """`file:line` of what sets `keys`."""
        return f"{self.path}:{line_of(keys, self.text)}"


def read(path: Path, *, must_exist: bool) -> SettingsFile:
    """The file at `path`.

    Args:
        path: the file.
        must_exist: somebody named it, so its absence is a mistake.

    Raises:
        ConfigurationError: it cannot be read, or is not TOML; with the line where that is known.
    """
    text = _text(path, must_exist=must_exist)
    try:
        return SettingsFile(path, text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(_not_toml(path, text, str(error))) from error


def line_of(keys: Sequence[str], text: str) -> int:
    """The 1-based line that sets `keys`; TOML parsers do not tell."""
    wanted = tuple(keys)
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[([^\[\]]+)\]", line):
            table = tuple(part.strip().strip("\"'") for part in header[1].split("."))
            if table == wanted[: len(table)] and len(table) >= len(wanted):
                return number
        elif (assignment := re.match(r"\s*([\w.\"'-]+)\s*=", line)) is not None:
            path = table + tuple(part.strip("\"'") for part in assignment[1].split("."))
            if path == wanted[: len(path)]:
                return number
    return 1


def _text(path: Path, *, must_exist: bool) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        if must_exist:
            raise ConfigurationError(f"{path} does not exist; ECHOD_CONFIG or --config names it.") from error
        return ""
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise ConfigurationError(f"{path} cannot be read: it is not UTF-8; save it as that.") from error
        raise ConfigurationError(f"{path} cannot be read: {reason_of(error)}; check its permissions.") from error


def _not_toml(path: Path, text: str, said: str) -> str:
    position = _POSITION.search(said)
    line = int(position[1]) if position and position[1] else len(text.rstrip().splitlines())
    what = _POSITION.sub("", said)
    hint = ' Words stand in quotes, like mode = "report".' if what == "Invalid value" else ""
    return f"{path}:{line}: this is not TOML: {what[:1].lower()}{what[1:]}.{hint}"
