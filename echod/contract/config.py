"""What `echod config show` prints as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from echod.contract.status import SCHEMA


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """A setting in force; `source` is `default`, `file` or `variable`, `place` the line or variable that says it."""

    key: str
    value: Any
    default: Any
    source: str
    place: str | None


@dataclass(frozen=True, slots=True)
class ConfigReport:
    """`echod config show`: every setting, and where echod's own files are; `file` need not exist."""

    file: str
    state_directory: str
    runtime_directory: str
    settings: tuple[SettingInfo, ...] = ()
    schema: int = SCHEMA
