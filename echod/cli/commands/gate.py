"""`echod workflow begin|end`: any tool can say that it is at work in a project."""

from __future__ import annotations

from pathlib import Path

from echod.cli.context import CommandContext
from echod.cli.output import format_timestamp, short_path
from echod.cli.wake import notify_daemon
from echod.errors import UsageError
from echod.memory.redact import redact
from echod.state.database import Database
from echod.state.workflow_log import WorkflowLog
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
