"""`echod claude` connects Claude Code and checks the connection. `echod hook` is the command of its hooks.

The checks read Claude Code's files and change none of them. Setup changes them only through the `claude` program.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from echod import __version__
from echod.cli import options
from echod.cli.context import CommandContext
from echod.cli.execute import Confirmation, confirm
from echod.cli.output import format_duration, sanitize, short_path, wrap
from echod.cli.root import CommandGroup, example, pass_command_context
from echod.errors import EchodError, ExitCode
from echod.files import open_regular, read_regular, write_private
from echod.hooks.run import run as run_hook
from echod.inbox.spool import Spool
from echod.memory.text import pluralize
from echod.paths import claude_home
from echod.state.database import Database
from echod.state.session_log import EventCount, HookEventLog

MARKETPLACE_DIR = Path(__file__).parents[2] / "claude"
PLUGIN_DIR = MARKETPLACE_DIR / "plugin"
PLUGIN_ID = "echod@echod"
_MAX_FILE_BYTES = 4 * 1024 * 1024
_CLAUDE_TIMEOUT_SECONDS = 120.0
_REPORT_TIMEOUT_SECONDS = 10.0


class ConnectionCheck(NamedTuple):
    """The result of one check, with a sentence for the user."""

    ok: bool
    text: str


@click.group(cls=CommandGroup)
def claude() -> None:
    """Connect Claude Code through its plugin."""


@claude.command(epilog=example("echod claude check"))
@pass_command_context
def check(context: CommandContext) -> None:
    """Check the connection with Claude Code and suggest fixes.

    Exits with 1 if something is missing. Claude Code's settings are never changed.
    """
    home = claude_home(context.environ)
    required = [_check_claude_program(context), *_check_plugin(home), _check_hook_command(context)]
    for result in (*required, _check_hook_events(_read_event_counts(context))):
        click.echo(wrap(result.text, indent="ok  " if result.ok else "!   "))
    for text in _limits(context):
        click.echo(wrap(text, indent="-   "))
    connected = all(result.ok for result in required)
    if not connected:
        click.echo("\nTo connect Claude Code with echod: echod claude setup, or yourself:")
        for command in plugin_install_commands():
            click.echo(f"  {command}")
    raise click.exceptions.Exit(ExitCode.OK if connected else ExitCode.FAILED)


@claude.command(epilog=example("echod claude setup --dry-run"))
@click.option("--summary", is_flag=True, help="Also give each session a summary of the memory when it starts.")
@options.dry_run
@options.yes
@pass_command_context
def setup(context: CommandContext, *, summary: bool, dry_run: bool, yes: bool) -> None:
    """Connect Claude Code: install the plugin, and test that its reports arrive.

    Shows the steps and asks. The plugin is installed by the `claude` program, whose files are not edited.
    """
    program = shutil.which("claude", path=context.environ.get("PATH"))
    if program is None:
        raise EchodError("Claude Code is not on the PATH (`claude`). Install it, and run this again.")
    steps = _missing_steps(claude_home(context.environ))
    add_summary = summary and not context.settings.hooks.session_summary
    for step in steps:
        click.echo(f"Run:    {shlex.join(step)}")
    if add_summary:
        click.echo(f"Write:  hooks.session_summary = true into {short_path(str(context.paths.config_file))}")
    click.echo("Test:   that the report of a hook arrives")
    if dry_run:
        return
    if (steps or add_summary) and not yes:
        confirm(context, Confirmation("Do it?"))
    for step in steps:
        _run_claude(context, program, step)
    if add_summary:
        _switch_summary_on(context.paths.config_file)
        context.notify_daemon()
    if (command := _check_hook_command(context)).ok is False:
        raise EchodError(f"{command.text} Then run this again, to test it.")
    if not _is_report_received(context):
        raise EchodError("The plugin is installed, but the report of a test did not arrive. Run: echod doctor")
    context.print_info("Claude Code is connected, and a test report arrived. It begins with the next session.")
    if add_summary:
        context.print_info("The service reads the new setting after: echod service restart")
    if context.current_project() is None:
        context.print_info("The current directory has no memory yet. To create one: echod init")


def _missing_steps(home: Path) -> list[list[str]]:
    """Return the commands that are still missing. A marketplace whose directory is gone is added again."""
    name = PLUGIN_ID.partition("@")[2]
    known = _read_json_object(home / "plugins" / "known_marketplaces.json").get(name)
    add, install = (shlex.split(command) for command in plugin_install_commands())
    steps = []
    if known is None:
        steps.append(add)
    elif not all(check.ok for check in _check_marketplace(home)):
        steps += [["claude", "plugin", "marketplace", "remove", name], add]
    installed = _read_json_object(home / "plugins" / "installed_plugins.json").get("plugins")
    if steps or not (isinstance(installed, dict) and installed.get(PLUGIN_ID)):
        steps.append(install)
    return steps


def _run_claude(context: CommandContext, program: str, step: list[str]) -> None:
    """Run one command of Claude Code.

    Raises:
        EchodError: it failed.
    """
    try:
        done = subprocess.run(
            [program, *step[1:]],
            env=dict(context.environ),
            capture_output=True,
            text=True,
            timeout=_CLAUDE_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EchodError(f"`{shlex.join(step)}` did not end. Run it yourself, and this again.") from error
    if done.returncode != 0:
        reason = sanitize((done.stderr or done.stdout).strip())[:300]
        raise EchodError(f"`{shlex.join(step)}` failed: {reason or f'exit code {done.returncode}'}")


def _switch_summary_on(file: Path) -> None:
    """Add the setting to the settings file of echod, whose other lines stay as they are.

    Raises:
        EchodError: the file has a table of hooks already, or cannot be written.
    """
    try:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if "hooks" in tomllib.loads(text):
            raise EchodError(f"Add this below [hooks] in {file} yourself: session_summary = true")
        file.parent.mkdir(parents=True, exist_ok=True)
        separator = "\n" if text and not text.endswith("\n") else ""
        write_private(file, f"{text}{separator}\n[hooks]\nsession_summary = true\n".encode())
    except (OSError, ValueError) as error:
        raise EchodError(f"{file} cannot be changed; check it with: echod config check") from error


def _is_report_received(context: CommandContext) -> bool:
    """Send the report of a test by the command of the hooks. Return whether it arrives."""
    program = shutil.which("echod", path=context.environ.get("PATH")) or "echod"
    spool = context.paths.spool
    before = _count_reports(context, spool)
    event = json.dumps({"session_id": "echod-claude-setup", "cwd": os.sep, "hook_event_name": "SessionEnd"})
    try:
        subprocess.run(
            [program, "hook", "session-end"], input=event, env=dict(context.environ), text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    deadline = time.monotonic() + _REPORT_TIMEOUT_SECONDS
    while _count_reports(context, spool) <= before:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _count_reports(context: CommandContext, spool: Path) -> int:
    """Return the number of reports in the spool and of those that the service has read."""
    waiting = len(Spool(spool).list_events()) if spool.is_dir() else 0
    return waiting + sum(count.count for count in _read_event_counts(context))


@claude.command("plugin-dir", epilog=example("echod claude plugin-dir"))
def plugin_dir() -> None:
    """Print the directory of the plugin that is part of echod, for --plugin-dir."""
    click.echo(str(PLUGIN_DIR))


def _limits(context: CommandContext) -> Iterator[str]:
    """Yield what a user of the plugin does not get with these settings."""
    if not context.settings.hooks.session_summary:
        yield "Sessions start without a summary of the memory (hooks.session_summary is false)."
    if "" not in context.settings.observe.teams:
        yield 'Tasks of sessions without a team are not recorded; to record them, add "" to observe.teams.'


def plugin_install_commands() -> tuple[str, str]:
    """Return the two commands that connect Claude Code."""
    return (
        shlex.join(["claude", "plugin", "marketplace", "add", str(MARKETPLACE_DIR)]),
        shlex.join(["claude", "plugin", "install", PLUGIN_ID]),
    )


def _check_claude_program(context: CommandContext) -> ConnectionCheck:
    program = shutil.which("claude", path=context.environ.get("PATH"))
    if program:
        return ConnectionCheck(ok=True, text=f"Claude Code is {program}.")
    return ConnectionCheck(ok=False, text="Claude Code is not on the PATH (`claude`).")


def _check_plugin(home: Path) -> Iterator[ConnectionCheck]:
    installed = _read_json_object(home / "plugins" / "installed_plugins.json").get("plugins")
    entries = installed.get(PLUGIN_ID) if isinstance(installed, dict) else None
    versions = [str(e.get("version")) for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []
    settings = _read_json_object(home / "settings.json")
    enabled = settings.get("enabledPlugins")
    if not versions:
        yield ConnectionCheck(ok=False, text="The plugin is not installed in Claude Code.")
        return
    if __version__ in versions:
        yield ConnectionCheck(ok=True, text=f"The plugin is installed (version {__version__}).")
    else:
        text = f"The plugin is installed as version {versions[0]}, this echod is {__version__}: claude plugin update"
        yield ConnectionCheck(ok=False, text=f"{text} {PLUGIN_ID}")
    yield from _check_marketplace(home)
    if isinstance(enabled, dict) and enabled.get(PLUGIN_ID) is False:
        yield ConnectionCheck(ok=False, text=f"The plugin is switched off: claude plugin enable {PLUGIN_ID}")
    if settings.get("disableAllHooks") is True:
        yield ConnectionCheck(
            ok=False, text=f"All hooks are switched off (disableAllHooks in {home / 'settings.json'})."
        )


def _check_marketplace(home: Path) -> Iterator[ConnectionCheck]:
    """Check that the directory from which Claude Code updates the plugin exists. Its path names Python's version."""
    known = _read_json_object(home / "plugins" / "known_marketplaces.json").get(PLUGIN_ID.partition("@")[2])
    source = known.get("source") if isinstance(known, dict) else None
    path = source.get("path") if isinstance(source, dict) else None
    if not isinstance(path, str) or Path(path).is_dir():
        return
    commands = f"claude plugin marketplace remove {PLUGIN_ID.partition('@')[2]}, then the commands below"
    text = f"The plugin's marketplace {path} is gone, since echod was moved or upgraded. Run: {commands}"
    yield ConnectionCheck(ok=False, text=text)


def _check_hook_command(context: CommandContext) -> ConnectionCheck:
    """Check that the `echod` on the PATH is this one, since hooks call it by its name."""
    program = shutil.which("echod", path=context.environ.get("PATH"))
    ours = Path(sys.executable).with_name("echod")
    if program is None:
        directory = ours.parent if ours.exists() else "the directory of the command"
        return ConnectionCheck(ok=False, text=f"Hooks cannot find the command `echod`: put {directory} on the PATH.")
    if ours.exists() and not ours.samefile(program) and _read_interpreter(Path(program)) != sys.executable:
        return ConnectionCheck(ok=False, text=f"Hooks would call another echod, {program}, and not {ours}.")
    return ConnectionCheck(ok=True, text=f"Hooks call {program}.")


def _read_interpreter(script: Path) -> str:
    try:
        with open_regular(script) as file:
            first = file.readline(4096)
    except OSError:
        return ""
    return os.fsdecode(first.removeprefix(b"#!").strip()) if first.startswith(b"#!") else ""


def _read_event_counts(context: CommandContext) -> tuple[EventCount, ...]:
    database = Database.open_readonly(context.paths.database)
    if database is None:
        return ()
    with database:
        return HookEventLog(database).list_counts()


def _check_hook_events(counts: tuple[EventCount, ...]) -> ConnectionCheck:
    if not counts:
        return ConnectionCheck(ok=False, text="No hook has reported anything yet. The next session will.")
    last = max(counts, key=lambda count: count.last_at)
    summary = pluralize(sum(count.count for count in counts), "event was reported", "events were reported")
    ago = format_duration(time.time() - last.last_at)
    return ConnectionCheck(ok=True, text=f"{summary}, the last {ago} ago ({last.event}: {last.outcome}).")


def _read_json_object(file: Path) -> dict[str, Any]:
    """Read the JSON object in one of Claude Code's files. Return an empty one if it is missing or invalid."""
    try:
        value = json.loads(read_regular(file, _MAX_FILE_BYTES))
    except (OSError, ValueError, RecursionError, MemoryError):
        return {}
    return value if isinstance(value, dict) else {}


@click.command(epilog=example("echod hook task-completed < event.json"))
@click.argument(
    "event",
    help="The name of the event, such as task-completed or pre-tool-use.",
)
def hook(*, event: str) -> None:
    """Record a hook event of an agent.

    Prints nothing, always exits with 0, and needs neither the service nor valid settings. See docs/claude-code.md.
    """
    try:
        run_hook([event], os.environ, sys.platform)
    finally:
        os._exit(0)
