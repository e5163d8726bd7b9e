"""What the checks look at, and the words in which they answer. Values only."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from echod.contract.commands import Check, CheckResult
from echod.paths import Paths
from echod.settings.values import Settings


@dataclass(frozen=True, slots=True)
class DoctorContext:
    """One user on one machine at one moment.

    Attributes:
        paths: where echod's own files are.
        settings: the settings; the defaults where the user's cannot be read.
        environ: the environment of whoever asks.
        platform: as in `sys.platform`.
        python: the interpreter that runs this installation.
        version: the version of whoever asks.
        uid: the user.
        now: Unix seconds.
        monotonic: seconds of the monotonic clock.
        mounts: the text of `daemon.mounts.read_mounts`.
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
    """A command line as it can be typed, whatever is in its words."""
    return shlex.join(map(str, words))


def passed(code: str, text: str, path: Path | None = None) -> Check:
    """As it should be."""
    return Check(code, CheckResult.OK, text, "", None if path is None else str(path))


def note(code: str, text: str, fix: str = "", path: Path | None = None) -> Check:
    """Worth knowing; nothing fails because of it."""
    return Check(code, CheckResult.NOTE, text, fix, None if path is None else str(path))


def problem(code: str, text: str, fix: str, path: Path | None = None) -> Check:
    """Something does not work, or a promise does not hold here."""
    return Check(code, CheckResult.PROBLEM, text, fix, None if path is None else str(path))
