"""Define the input of the checks, and create their results. Values only."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from echod.contract.commands import Check, CheckResult
from echod.paths import Paths
from echod.settings.schema import Settings


@dataclass(frozen=True, slots=True)
class DoctorContext:
    """One user on one machine at one moment (`now` in Unix seconds, `monotonic` by that clock).

    `settings` are the defaults where the user's cannot be read. `platform` is as in `sys.platform`. `python` runs this
    installation, of this `version`. `mounts` is from `runtime.read_mounts`.
    """

    paths: Paths
    settings: Settings
    environ: Mapping[str, str]
    platform: str
    python: Path
    version: str
    uid: int
    now: float
    monotonic: float
    mounts: str


def command_line(*words: object) -> str:
    """Return a command line with all words quoted for a shell."""
    return shlex.join(map(str, words))


def passed(code: str, text: str, path: Path | None = None) -> Check:
    """Return the result of a check that passed."""
    return Check(code, CheckResult.OK, text, "", None if path is None else str(path))


def note(code: str, text: str, fix: str = "", path: Path | None = None) -> Check:
    """Return a result that the user may want to know, although nothing fails because of it."""
    return Check(code, CheckResult.NOTE, text, fix, None if path is None else str(path))


def problem(code: str, text: str, fix: str, path: Path | None = None) -> Check:
    """Return the result of a check that failed: something does not work, or a guarantee does not hold here."""
    return Check(code, CheckResult.PROBLEM, text, fix, None if path is None else str(path))
