"""What `echod status` and `echod gate` say of a pause: that nothing is written although no workflow runs."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from pathlib import Path

from echod.contract.status import GateReason, Severity, Warn
from echod.errors import StateError
from echod.projects.registry import Pauses, Projects

MARKER = "paused"
"""Names a pause among the reasons of a gate; it is no workflow's marker and never holds the gate itself."""


def pauses_or_warning(projects: Projects, now: float) -> tuple[Pauses | None, tuple[Warn, ...]]:
    """Who rests now; None, and a warning, where that cannot be read: unknown is not "nobody"."""
    try:
        return projects.pauses(), ()
    except StateError as error:
        return None, (Warn("pauses-unreadable", Severity.WARNING, now, str(error), "No job runs without knowing."),)


def paused_warnings(pauses: Pauses, missing: Collection[Path], now: float) -> Iterator[Warn]:
    """A notice for the pause of everything and for that of each project, other than those that are not there."""
    since = now if pauses.since is None else min(pauses.since, now)
    if pauses.everything:
        yield Warn(
            "paused", Severity.NOTICE, since, "Everything is paused: no memory is written.", _fix("echod resume")
        )
    for root in pauses.roots:
        if root not in missing:
            text = f"{root} is paused: its memory is not written."
            yield Warn("paused", Severity.NOTICE, since, text, _fix(_resume(root)))


def pause_reasons(pauses: Pauses, project: Path) -> Iterator[GateReason]:
    """What rests this project, each with how to end it."""
    if pauses.everything:
        text = "Everything is paused; let it go on with: echod resume"
        yield GateReason(MARKER, text, holds=False, since=pauses.since)
    if pauses.names(project):
        text = f"This project is paused; let it go on with: {_resume(project)}"
        yield GateReason(MARKER, text, holds=False, since=pauses.since)


def _fix(command: str) -> str:
    return f"Let it go on with: {command}"


def _resume(root: Path) -> str:
    return f"echod resume {shlex.quote(str(root))}"
