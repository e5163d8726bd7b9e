"""`echod workflow begin|end`: any tool can say that it is at work in a project.

`echod gate`: the verdict on a project, with every marker that was looked at.

Commands by which a tool says that it is at work.

Commands about what echod does: run, status, doctor, gate, jobs, log, undo.
"""

from __future__ import annotations

from pathlib import Path

import click

from echod.cli import options
from echod.cli.context import CommandContext, notify_daemon
from echod.cli.options import PATH, Number, WholeNumber
from echod.cli.output import format_timestamp, short_path, wrap
from echod.cli.root import example, pass_command_context
from echod.contract.status import GateReport, to_json
from echod.errors import UsageError
from echod.memory.redact import redact
from echod.state.database import Database
from echod.state.workflow_log import WorkflowLog
from echod.status.collect import PAUSE_MARKER
from echod.workflows import ProcessState, SystemProcessTable

_CLAUDE_PID_VARIABLE = "CLAUDE_PID"
_MAX_NAME_LENGTH = 100


def begin_workflow(context: CommandContext, name: str, path: Path, pid: int | None, ttl_minutes: float) -> None:
    """Announce a workflow; it ends with `end`, with its process, or after `ttl_minutes`."""
    if not name.strip() or not name.isprintable() or len(name) > _MAX_NAME_LENGTH:
        raise UsageError(f"A workflow's name is 1 to {_MAX_NAME_LENGTH} printable characters; {name!r} is none.")
    name = redact(name).text
    project = context.find_project(path)
    owner = pid if pid is not None else _claude_pid(context)
    until = context.now() + ttl_minutes * 60
    with Database.open(context.paths.database) as database:
        WorkflowLog(database).begin(
            str(project), name, pid=owner, pid_started=_process_start_time(owner), until=until, now=context.now()
        )
    notify_daemon(context)
    end_text = f"{f'process {owner} ends or ' if owner else ''}at {format_timestamp(until, context.now())}"
    context.print_info(f"{name} runs in {short_path(str(project))}: no memory is written there until")
    context.print_info(f"`echod workflow end {name}`, or {'when ' if owner else ''}{end_text}.")


def end_workflow(context: CommandContext, name: str, path: Path) -> None:
    """The announced workflow is over."""
    project, name = context.find_project(path), redact(name).text
    with Database.open(context.paths.database) as database:
        ended = WorkflowLog(database).end(str(project), name, context.now())
    if not ended:
        raise UsageError(f"No workflow {name!r} runs in {short_path(str(project))}; `echod gate` lists what does.")
    notify_daemon(context)
    context.print_info(f"{name} has ended.")


def _claude_pid(context: CommandContext) -> int | None:
    text = context.environ.get(_CLAUDE_PID_VARIABLE, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) > 1 else None


def _process_start_time(pid: int | None) -> float | None:
    if pid is None:
        return None
    process = SystemProcessTable().lookup(pid)
    if process.state is ProcessState.DEAD:
        raise UsageError(f"There is no process {pid}; leave --pid out to let --ttl decide alone.")
    return process.started


_STATE_TEXTS = {
    "idle": "idle: its memory may be written now",
    "quiet": "quiet: it was just at work, so its memory is left alone for a moment",
    "active": "active: a workflow runs, so its memory is left alone",
}
_PAUSED_TEXT = "idle: no workflow runs; but it is paused, so its memory is left alone"


def show_gate(context: CommandContext, path: Path, *, as_json: bool) -> None:
    """Print the verdict. The exit code is 0 whatever it is."""
    from echod.app.context import open_read_context
    from echod.status.collect import gate_report, pause_reasons

    project = context.find_project(path)
    now = context.now()
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        verdict = read_context.project_gate.check(project, context.list_stores(project), now)
        report = gate_report(verdict, pause_reasons(read_context.projects.pauses(), project))
    click.echo(to_json(report) if as_json else context.colored(_gate_text(project, report, now)))


def _gate_text(project: Path, report: GateReport, now: float) -> str:
    pauses = [reason for reason in report.reasons if reason.marker == PAUSE_MARKER]
    lines = [
        short_path(str(project)),
        _PAUSED_TEXT if pauses and report.state == "idle" else _STATE_TEXTS[report.state],
    ]
    lines += [wrap(f"{PAUSE_MARKER}: {pause.text}") for pause in pauses]
    for reason in report.reasons:
        if reason in pauses:
            continue
        lines.append(f"\n{'-' if reason.holds else '!'} {reason.marker}")
        lines.append(wrap(reason.text, indent="  "))
    if report.until is not None:
        lines.append(f"\nAsk again at {format_timestamp(report.until, now)}.")
    return "\n".join(lines)


name_argument = click.argument("name", help="Any name; `end` takes the same.")
project_or_cwd_option = click.option(
    "--project",
    metavar="PATH",
    type=PATH,
    default=Path(),
    show_default=True,
    help="The project; default: the current directory.",
)


@click.group()
def workflow() -> None:
    """Declare that a workflow begins or ends."""


@workflow.command(epilog=example("echod workflow begin nightly-refactoring --ttl 90"))
@name_argument
@project_or_cwd_option
@click.option("--pid", metavar="PID", type=WholeNumber(min=1), help="It ends with this process; default: CLAUDE_PID.")
@click.option(
    "--ttl",
    metavar="MINUTES",
    type=Number(min=0.01),
    default=240.0,
    show_default=True,
    help="It ends by itself then.",
)
@pass_command_context
def begin(context: CommandContext, *, name: str, project: Path, pid: int | None, ttl: float) -> None:
    """Keep echod from writing the project's memory until the workflow ends."""
    begin_workflow(context, name, project, pid, ttl)


@workflow.command(epilog=example("echod workflow end nightly-refactoring"))
@name_argument
@project_or_cwd_option
@pass_command_context
def end(context: CommandContext, *, name: str, project: Path) -> None:
    """The workflow is over."""
    end_workflow(context, name, project)


@click.command(epilog=example("echod gate ~/src/my-project"))
@options.project_path_or_cwd
@options.json
@pass_command_context
def gate(context: CommandContext, *, path: Path, json: bool) -> None:
    """Show whether a project's memory may be written now."""
    show_gate(context, path, as_json=json)
