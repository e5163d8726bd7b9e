"""`echod workflow begin|end`: any tool can say that it is at work in a project."""

from __future__ import annotations

from pathlib import Path

from echod.cli.shell import Shell
from echod.cli.text import moment, short_path
from echod.cli.wake import wake_daemon
from echod.errors import UsageError
from echod.memory.redact import redact
from echod.state.database import Database
from echod.state.workflow_log import WorkflowLog
from echod.workflows import Life, SystemProcesses

_CLAUDE_PID = "CLAUDE_PID"
_LONGEST_NAME = 100


def begin(shell: Shell, name: str, path: Path, pid: int | None, ttl_minutes: float) -> None:
    """Announce a workflow; it ends with `end`, with its process, or after `ttl_minutes`."""
    if not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise UsageError(f"A workflow's name is 1 to {_LONGEST_NAME} printable characters; {name!r} is none.")
    name = redact(name).text
    project = shell.project(path)
    owner = pid if pid is not None else _claude_pid(shell)
    until = shell.now() + ttl_minutes * 60
    with Database.open(shell.paths.database) as database:
        WorkflowLog(database).begin(
            str(project), name, pid=owner, pid_started=_started(owner), until=until, now=shell.now()
        )
    wake_daemon(shell)
    ends = f"{f'process {owner} ends or ' if owner else ''}at {moment(until, shell.now())}"
    shell.say(f"{name} runs in {short_path(str(project))}: no memory is written there until")
    shell.say(f"`echod workflow end {name}`, or {'when ' if owner else ''}{ends}.")


def end(shell: Shell, name: str, path: Path) -> None:
    """The announced workflow is over."""
    project, name = shell.project(path), redact(name).text
    with Database.open(shell.paths.database) as database:
        ended = WorkflowLog(database).end(str(project), name, shell.now())
    if not ended:
        raise UsageError(f"No workflow {name!r} runs in {short_path(str(project))}; `echod gate` lists what does.")
    wake_daemon(shell)
    shell.say(f"{name} has ended.")


def _claude_pid(shell: Shell) -> int | None:
    text = shell.environ.get(_CLAUDE_PID, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) > 1 else None


def _started(pid: int | None) -> float | None:
    if pid is None:
        return None
    process = SystemProcesses().look(pid)
    if process.life is Life.GONE:
        raise UsageError(f"There is no process {pid}; leave --pid out to let --ttl decide alone.")
    return process.started
