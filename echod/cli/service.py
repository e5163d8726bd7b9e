"""`echod service`: hand the daemon to systemd or launchd, and take it back."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import click

from echod import __version__
from echod.cli.shell import Shell
from echod.cli.text import paragraph, short_path
from echod.service.base import Recorded, Service, record
from echod.service.choose import service_for


def install(shell: Shell, *, force: bool, dry_run: bool) -> None:
    """Install, enable and start the service, and see that it answers."""
    recorded = _recorded(shell)
    if not dry_run:
        _ = shell.settings  # settings that cannot be used are told here, not by a service that does not come up
        _say(shell, _service(shell).install(recorded, force=force))
        return
    standing = _service(shell).standing(recorded)
    verb = "is up to date" if standing.current else "would be replaced" if standing.installed else "would be written"
    click.echo(f"{short_path(str(standing.file))} {verb}; it would run: {' '.join(recorded.command)}")


def uninstall(shell: Shell, *, force: bool, dry_run: bool) -> None:
    """Stop the service and remove what `install` made."""
    if not dry_run:
        _say(shell, _service(shell).uninstall(force=force))
        return
    standing = _service(shell).standing(_recorded(shell))
    verb = "would be removed and the service stopped" if standing.installed else "is not there; nothing to do"
    click.echo(f"{short_path(str(standing.file))} {verb}.")


def start(shell: Shell) -> None:
    """Start the installed service."""
    _say(shell, _service(shell).start())


def stop(shell: Shell) -> None:
    """Stop it until the next login."""
    _say(shell, _service(shell).stop())


def restart(shell: Shell) -> None:
    """Stop and start it."""
    _say(shell, _service(shell).restart())


def logs(shell: Shell, lines: int, *, follow: bool) -> NoReturn:
    """Become the program that shows the log."""
    command = _service(shell).logs_command(lines=lines, follow=follow)
    sys.stdout.flush()
    os.execvp(command[0], command)  # noqa: S606  (a fixed command of the platform's supervisor)


def _service(shell: Shell) -> Service:
    return service_for(sys.platform, shell.paths, __version__, shell.environ)


def _recorded(shell: Shell) -> Recorded:
    return record(Path(sys.executable), shell.environ)


def _say(shell: Shell, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        shell.say(paragraph(sentence))
