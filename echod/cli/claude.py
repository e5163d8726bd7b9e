"""`echod claude`: how Claude Code reaches echod. Looks at Claude Code's files, says what to do, edits none of them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

from echod import __version__
from echod.cli.shell import Shell
from echod.cli.text import count, duration, paragraph
from echod.errors import Exit
from echod.paths import claude_home
from echod.state.hook_events import Heard

MARKETPLACE = Path(__file__).parent.parent / "claude"
PLUGIN = MARKETPLACE / "plugin"
PLUGIN_ID = "echod@echod"
_LARGEST_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: whether it is as it should be, and what there is to say."""

    good: bool
    text: str


def connecting_commands() -> tuple[str, str]:
    """The two commands by which a person connects Claude Code."""
    return (
        shlex.join(["claude", "plugin", "marketplace", "add", str(MARKETPLACE)]),
        shlex.join(["claude", "plugin", "install", PLUGIN_ID]),
    )


def plugin_dir() -> None:
    """Print where the plugin is."""
    click.echo(str(PLUGIN))


def check(shell: Shell) -> NoReturn:
    """Say what is connected and what is not; exit with 1 if something is missing."""
    home = claude_home(shell.environ)
    findings = [
        _claude(shell),
        *_plugin(home),
        _command(shell),
        _heard(_heard_of(shell)),
    ]
    for finding in findings:
        click.echo(paragraph(finding.text, indent="ok  " if finding.good else "!   "))
    connected = all(finding.good for finding in findings[:-1])
    if not connected:
        click.echo("\nTo connect Claude Code with echod:")
        for command in connecting_commands():
            click.echo(f"  {command}")
    raise click.exceptions.Exit(Exit.OK if connected else Exit.FAILED)


def _claude(shell: Shell) -> Finding:
    found = shutil.which("claude", path=shell.environ.get("PATH"))
    if found:
        return Finding(good=True, text=f"Claude Code is {found}.")
    return Finding(good=False, text="Claude Code is not on the PATH (`claude`).")


def _plugin(home: Path) -> Iterator[Finding]:
    installed = _object(home / "plugins" / "installed_plugins.json").get("plugins")
    entries = installed.get(PLUGIN_ID) if isinstance(installed, dict) else None
    versions = [str(e.get("version")) for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []
    settings = _object(home / "settings.json")
    enabled = settings.get("enabledPlugins")
    if not versions:
        yield Finding(good=False, text="The plugin is not installed in Claude Code.")
        return
    if __version__ in versions:
        yield Finding(good=True, text=f"The plugin is installed (version {__version__}).")
    else:
        text = f"The plugin is installed as version {versions[0]}; this echod has {__version__}: claude plugin update"
        yield Finding(good=False, text=f"{text} {PLUGIN_ID}")
    if isinstance(enabled, dict) and enabled.get(PLUGIN_ID) is False:
        yield Finding(good=False, text=f"The plugin is switched off: claude plugin enable {PLUGIN_ID}")
    if settings.get("disableAllHooks") is True:
        yield Finding(good=False, text=f"All hooks are switched off (disableAllHooks in {home / 'settings.json'}).")


def _command(shell: Shell) -> Finding:
    """Hooks call `echod` by its name, so the one on the PATH has to be this one."""
    found = shutil.which("echod", path=shell.environ.get("PATH"))
    ours = Path(sys.executable).with_name("echod")
    if found is None:
        where = ours.parent if ours.exists() else "the directory of the command"
        return Finding(good=False, text=f"Hooks cannot find the command `echod`: put {where} on the PATH.")
    if ours.exists() and not ours.samefile(found) and _interpreter(Path(found)) != sys.executable:
        return Finding(good=False, text=f"Hooks would call another echod, {found}, and not {ours}.")
    return Finding(good=True, text=f"Hooks call {found}.")


def _interpreter(script: Path) -> str:
    try:
        with script.open("rb") as file:
            first = file.readline(4096)
    except OSError:
        return ""
    return os.fsdecode(first.removeprefix(b"#!").strip()) if first.startswith(b"#!") else ""


def _heard_of(shell: Shell) -> tuple[Heard, ...]:
    from echod.state.database import Database
    from echod.state.hook_events import ObservedLog

    database = Database.open_reading(shell.paths.database)
    if database is None:
        return ()
    with database:
        return ObservedLog(database).heard()


def _heard(heard: tuple[Heard, ...]) -> Finding:
    if not heard:
        return Finding(good=False, text="No hook has reported anything yet; it begins with the next session.")
    last = max(heard, key=lambda one: one.last_at)
    said = count(sum(one.count for one in heard), "event was reported", "events were reported")
    ago = duration(time.time() - last.last_at)
    return Finding(good=True, text=f"{said}, the last {ago} ago ({last.event}: {last.outcome}).")


def _object(file: Path) -> dict[str, Any]:
    """The JSON object in one of Claude Code's files; empty where there is none that can be read."""
    try:
        if file.stat().st_size > _LARGEST_BYTES:
            return {}
        value = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
