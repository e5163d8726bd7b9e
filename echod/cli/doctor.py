"""`echod doctor`: everything that was checked, what is wrong, and how to mend it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import click

from echod import __version__
from echod.cli.shell import Shell
from echod.cli.text import count, paragraph, short_path
from echod.contract.commands import Check, CheckResult, DoctorReport
from echod.contract.status import to_json
from echod.errors import ConfigurationError, Exit
from echod.settings.values import Settings
from echod.store import layout

_MARKS = {CheckResult.OK: "ok  ", CheckResult.NOTE: "-   ", CheckResult.PROBLEM: "!   "}


def doctor(shell: Shell, path: Path | None, *, as_json: bool) -> NoReturn:
    """Print every check; exit with 1 if one found a problem."""
    from echod.doctor.case import Case
    from echod.doctor.examine import examine
    from echod.runtime.disk import read_mounts

    case = Case(
        paths=shell.paths,
        settings=_settings(shell),
        environ=shell.environ,
        platform=sys.platform,
        python=Path(sys.executable),
        version=__version__,
        uid=os.getuid(),
        now=shell.now(),
        monotonic=time.monotonic(),
        mounts=read_mounts(),
    )
    report = examine(case, None if path is None else _project(shell, path))
    click.echo(to_json(report) if as_json else shell.painted("\n".join(_lines(report))))
    raise click.exceptions.Exit(Exit.OK if report.healthy else Exit.FAILED)


def _project(shell: Shell, path: Path) -> Path:
    """The project that is meant; one that is gone is named by its root."""
    root = layout.project_root(shell.cwd / path.expanduser())
    return next((above for above in (root, *root.parents) if shell.stores(above)), root)


def _settings(shell: Shell) -> Settings:
    try:
        return shell.settings
    except ConfigurationError:
        return Settings()  # that they cannot be used is one of the checks


def _lines(report: DoctorReport) -> Iterator[str]:
    place: str | None = None
    for check in report.checks:
        if check.place is not None and check.place != place:
            yield f"\n{short_path(check.place)}"
        elif check.place is None and place is not None:
            yield ""
        place = check.place
        yield from _check(check)
    problems = sum(check.result is CheckResult.PROBLEM for check in report.checks)
    notes = sum(check.result is CheckResult.NOTE for check in report.checks)
    said = "All is well" if not problems else count(problems, "problem")
    aside = f", {count(notes, 'note')}" if notes else ""
    yield f"\n{said}{aside}."


def _check(check: Check) -> Iterator[str]:
    yield paragraph(check.text, indent=_MARKS[check.result])
    if check.fix:
        yield paragraph(check.fix, indent="    > ", hang="      ")
