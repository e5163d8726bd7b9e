"""`echod claude` connects Claude Code and checks the connection. `echod hook` is the command of its hooks.

The checks read Claude Code's files and change none of them. Setup changes them only through the `claude` program.
"""

from __future__ import annotations

import json as json_format
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
from echod.cli.commands.init import init as init_command
from echod.cli.context import CommandContext
from echod.cli.execute import Confirmation, confirm
from echod.cli.output import format_duration, sanitize, short_path, wrap
from echod.contract.codec import to_json
from echod.contract.commands import Check, CheckResult, ClaudeReport
from echod.errors import EchodError, ExitCode, UsageError
from echod.files import open_regular, read_regular, write_private
from echod.hooks.run import run as run_hook
from echod.inbox.spool import Spool
from echod.memory.text import pluralize
from echod.paths import claude_home
from echod.projects.discovery import main_worktree_path
from echod.state.database import Database
from echod.state.session_log import EventCount, HookEventLog

MARKETPLACE_DIR = Path(__file__).parents[2] / "claude"
PLUGIN_DIR = MARKETPLACE_DIR / "plugin"
MCP_PLUGIN_DIR = MARKETPLACE_DIR / "mcp-plugin"
PLUGIN_ID = "echod@echod"
_MAX_FILE_BYTES = 4 * 1024 * 1024
_CLAUDE_TIMEOUT_SECONDS = 120.0
_REPORT_TIMEOUT_SECONDS = 10.0


_MARKS = {CheckResult.OK: "ok  ", CheckResult.NOTE: "-   ", CheckResult.PROBLEM: "!   "}


def check(context: CommandContext, *, json: bool) -> None:
    """Run `echod claude check`."""
    checks = tuple(_list_checks(context))
    connected = all(one.result is not CheckResult.PROBLEM for one in checks)
    if json:
        click.echo(to_json(ClaudeReport(connected, checks, plugin_install_commands())))
    else:
        for one in checks:
            click.echo(wrap(f"{one.text} {one.fix}".rstrip(), indent=_MARKS[one.result]))
        if not connected:
            click.echo("\nTo connect Claude Code with echod: echod claude setup, or yourself:")
            for command in plugin_install_commands():
                click.echo(f"  {command}")
    raise click.exceptions.Exit(ExitCode.OK if connected else ExitCode.FAILED)


def _list_checks(context: CommandContext) -> Iterator[Check]:
    plugin = tuple(_check_plugin(claude_home(context.environ)))
    yield _check_claude_program(context, is_installed=plugin[0].code == "plugin")
    yield from plugin
    yield _check_hook_command(context)
    yield _check_hook_events(context)
    yield from _limits(context)


class _Setup(NamedTuple):
    """The steps of `echod claude setup`. `project` gets a memory; None: no project does."""

    commands: list[list[str]]
    summary: bool
    project: Path | None

    def describe(self, context: CommandContext) -> Iterator[str]:
        """Describe each step in a line."""
        for command in self.commands:
            yield f"Run:    {shlex.join(command)}"
        if self.summary:
            yield f"Write:  hooks.session_summary = true into {short_path(str(context.paths.config_file))}"
        if self.project is not None:
            yield f"Create: the memory of {short_path(str(self.project))} (echod init)"
        yield "Test:   that the report of a hook arrives"


def setup(context: CommandContext, *, summary: bool | None, init: bool | None, dry_run: bool, yes: bool) -> None:
    """Run `echod claude setup`."""
    program = shutil.which("claude", path=context.environ.get("PATH"))
    if program is None:
        raise EchodError("Claude Code is not on the PATH (`claude`). Install it, and run this again.")
    asks = context.is_interactive and not (yes or dry_run)
    plan = _plan_setup(context, summary=summary, init=init, asks=asks)
    click.echo("\n".join(plan.describe(context)))
    if dry_run:
        return
    if (plan.commands or plan.summary or plan.project is not None) and not yes:
        confirm(context, Confirmation("Do it?"))
    for step in plan.commands:
        _run_claude(context, program, step)
    if plan.summary:
        _switch_summary_on(context.paths.config_file)
        context.notify_daemon()
    if plan.project is not None:
        init_command(
            context, path=plan.project, roles=None, layout=None, no_ignore=False, sessions=False, dry_run=False
        )
    if (command := _check_hook_command(context)).result is not CheckResult.OK:
        raise EchodError(f"{command.text} {command.fix} Then run this again, to test it.")
    if not _is_report_received(context):
        raise EchodError("The plugin is installed, but the report of a test did not arrive. Run: echod doctor")
    context.print_info("Claude Code is connected, and a test report arrived. It begins with the next session.")
    if plan.summary:
        context.print_info("The service reads the new setting after: echod service restart")
    if _project_without_memory(context) is not None:
        context.print_info("The current directory has no memory yet. To create one: echod init")


def _plan_setup(context: CommandContext, *, summary: bool | None, init: bool | None, asks: bool) -> _Setup:
    """Return the steps that are missing. A step that no option decides is asked for, or left out without a terminal.

    Raises:
        UsageError: a memory is wanted where none can be.
    """
    has_summary = context.settings.hooks.session_summary
    if summary is None and not has_summary and asks:
        summary = click.confirm("Give each session a summary of the memory when it starts?")
    project = _project_without_memory(context)
    if project is not None and init is None and asks:
        init = click.confirm(f"Create a memory for {short_path(str(project))}?")
    if init and project is None and context.current_project() is None:
        raise UsageError("This directory cannot be a project. Change to one, or use: echod init PATH")
    return _Setup(
        _missing_steps(claude_home(context.environ)), bool(summary) and not has_summary, project if init else None
    )


def _project_without_memory(context: CommandContext) -> Path | None:
    """Return the project of the current directory if it has no memory but could have one."""
    if context.cwd is None or context.current_project() is not None:
        return None
    root = context.locator.find_init_root(main_worktree_path(context.cwd))
    return root if context.locator.exclusion_reason(root) is None else None


def _missing_steps(home: Path) -> list[list[str]]:
    """Return the commands that are still missing. A marketplace whose directory is gone is added again."""
    name = PLUGIN_ID.partition("@")[2]
    known = _read_json_object(home / "plugins" / "known_marketplaces.json").get(name)
    add, install = (shlex.split(command) for command in plugin_install_commands())
    steps = []
    if known is None:
        steps.append(add)
    elif any(_check_marketplace(home)):
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
    event = json_format.dumps({"session_id": "echod-claude-setup", "cwd": os.sep, "hook_event_name": "SessionEnd"})
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


def plugin_dir(_context: CommandContext) -> None:
    """Run `echod claude plugin-dir`."""
    click.echo(str(PLUGIN_DIR))


def _limits(context: CommandContext) -> Iterator[Check]:
    """Yield what a user of the plugin does not get with these settings."""
    if not context.settings.hooks.session_summary:
        text = "Sessions start without a summary of the memory (hooks.session_summary is false)."
        yield Check("session-summary", CheckResult.NOTE, text, "To turn it on: echod claude setup --summary")
    if "" not in context.settings.observe.teams:
        text = "Tasks of sessions without a team are not recorded."
        yield Check("sessions-without-team", CheckResult.NOTE, text, 'To record them, add "" to observe.teams.')


def plugin_install_commands() -> tuple[str, str]:
    """Return the two commands that connect Claude Code."""
    return (
        shlex.join(["claude", "plugin", "marketplace", "add", str(MARKETPLACE_DIR)]),
        shlex.join(["claude", "plugin", "install", PLUGIN_ID]),
    )


def _check_claude_program(context: CommandContext, *, is_installed: bool) -> Check:
    """Check that `claude` is found. An installed plugin works without that, for example in an editor."""
    program = shutil.which("claude", path=context.environ.get("PATH"))
    if program:
        return Check("claude-program", CheckResult.OK, f"Claude Code is {program}.", "")
    result = CheckResult.NOTE if is_installed else CheckResult.PROBLEM
    return Check("claude-program", result, "Claude Code is not on the PATH (`claude`).", "")


def _check_plugin(home: Path) -> Iterator[Check]:
    """Check the plugin. The first check has the code `plugin` if it is installed."""
    installed = _read_json_object(home / "plugins" / "installed_plugins.json").get("plugins")
    entries = installed.get(PLUGIN_ID) if isinstance(installed, dict) else None
    versions = [str(e.get("version")) for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []
    settings = _read_json_object(home / "settings.json")
    enabled = settings.get("enabledPlugins")
    if not versions:
        text = "The plugin is not installed in Claude Code."
        yield Check("plugin-missing", CheckResult.PROBLEM, text, "")
        return
    if __version__ in versions:
        yield Check("plugin", CheckResult.OK, f"The plugin is installed (version {__version__}).", "")
    else:
        text = f"The plugin is installed as version {versions[0]}, this echod is {__version__}."
        yield Check("plugin", CheckResult.PROBLEM, text, f"Run: claude plugin update {PLUGIN_ID}")
    yield from _check_marketplace(home)
    if isinstance(enabled, dict) and enabled.get(PLUGIN_ID) is False:
        fix = f"Run: claude plugin enable {PLUGIN_ID}"
        yield Check("plugin-disabled", CheckResult.PROBLEM, "The plugin is switched off.", fix)
    if settings.get("disableAllHooks") is True:
        text = f"All hooks are switched off (disableAllHooks in {home / 'settings.json'})."
        yield Check("hooks-disabled", CheckResult.PROBLEM, text, "")


def _check_marketplace(home: Path) -> Iterator[Check]:
    """Check that the directory from which Claude Code updates the plugin exists. Its path names Python's version."""
    known = _read_json_object(home / "plugins" / "known_marketplaces.json").get(PLUGIN_ID.partition("@")[2])
    source = known.get("source") if isinstance(known, dict) else None
    path = source.get("path") if isinstance(source, dict) else None
    if not isinstance(path, str) or Path(path).is_dir():
        return
    text = f"The plugin's marketplace {path} is gone, since echod was moved or upgraded."
    fix = f"Run: claude plugin marketplace remove {PLUGIN_ID.partition('@')[2]}, then the commands below"
    yield Check("marketplace", CheckResult.PROBLEM, text, fix, path)


def _check_hook_command(context: CommandContext) -> Check:
    """Check that the `echod` on the PATH is this one, since hooks call it by its name."""
    program = shutil.which("echod", path=context.environ.get("PATH"))
    ours = Path(sys.executable).with_name("echod")
    if program is None:
        directory = ours.parent if ours.exists() else "the directory of the command"
        fix = f"Put {directory} on the PATH."
        return Check("hook-command", CheckResult.PROBLEM, "Hooks cannot find the command `echod`.", fix)
    if ours.exists() and not ours.samefile(program) and _read_interpreter(Path(program)) != sys.executable:
        text = f"Hooks would call another echod, {program}, and not {ours}."
        return Check("hook-command", CheckResult.PROBLEM, text, f"Put {ours.parent} first on the PATH.")
    return Check("hook-command", CheckResult.OK, f"Hooks call {program}.", "")


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


def _check_hook_events(context: CommandContext) -> Check:
    """Check whether hooks have reported anything. Their reports wait in the spool until a service reads them."""
    counts = _read_event_counts(context)
    if counts:
        last = max(counts, key=lambda count: count.last_at)
        summary = pluralize(sum(count.count for count in counts), "event was reported", "events were reported")
        ago = format_duration(time.time() - last.last_at)
        text = f"{summary}, the last {ago} ago ({last.event}: {last.outcome})."
        return Check("hook-events", CheckResult.OK, text, "")
    if waiting := _count_reports(context, context.paths.spool):
        text = f"{pluralize(waiting, 'event was reported and waits', 'events were reported and wait')} for the service."
        return Check("hook-events", CheckResult.OK, text, "")
    return Check(
        "hook-events",
        CheckResult.NOTE,
        "No hook has reported anything yet.",
        "The next session will, or run: echod claude setup",
    )


def _read_json_object(file: Path) -> dict[str, Any]:
    """Read the JSON object in one of Claude Code's files. Return an empty one if it is missing or invalid."""
    try:
        value = json_format.loads(read_regular(file, _MAX_FILE_BYTES))
    except (OSError, ValueError, RecursionError, MemoryError):
        return {}
    return value if isinstance(value, dict) else {}


def hook(_context: CommandContext, *, event: str) -> None:
    """Run `echod hook`."""
    try:
        run_hook([event], os.environ, sys.platform)
    finally:
        os._exit(0)
