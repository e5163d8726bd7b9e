"""`echod gate` shows whether memory may be written now. `echod workflow` lets any tool declare that it is working."""

from __future__ import annotations

from pathlib import Path

import click

from echod.cli.context import CommandContext, check_liveness
from echod.cli.execute import report_already_so
from echod.cli.output import format_timestamp, short_path, wrap
from echod.contract.codec import to_json
from echod.contract.status import GateReport, status_from_json
from echod.errors import UsageError
from echod.memory.redact import redact
from echod.state.database import Database
from echod.state.workflow_log import WorkflowLog
from echod.status.collect import PAUSE_MARKER, gate_report, pause_reasons
from echod.workflows import ProcessState, SystemProcessTable
from echod.workflows.model import GateState

_STATE_TEXTS = {
    "idle": "idle: its memory may be written now",
    "quiet": "quiet: a workflow just ended, so its memory is not written for a moment",
    "active": "active: a workflow is running, so its memory is not written",
}
_PAUSED_TEXT = "idle: no workflow is running, but it is paused, so its memory is not written"

_CLAUDE_PID_VARIABLE = "CLAUDE_PID"
_MAX_NAME_LENGTH = 100


def gate(context: CommandContext, *, path: Path, json: bool) -> None:
    """Run `echod gate`."""
    project = context.find_project(path)
    now = context.now()
    with context.open_read_context() as read_context:
        verdict = read_context.project_gate.check(project, context.list_stores(project), now)
        report = gate_report(verdict, pause_reasons(read_context.projects.pauses(), project))
    report = _with_service_time(context, project, report)
    click.echo(to_json(report) if json else context.colored(_gate_text(project, report, now)))


def _with_service_time(context: CommandContext, project: Path, report: GateReport) -> GateReport:
    """Return a quiet report with the end that the service expects, since only that knows since when it is quiet."""
    if report.state != GateState.QUIET or not check_liveness(context).is_answering:
        return report
    try:
        status = status_from_json(context.paths.status_snapshot.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return report
    gates = [store.gate for store in status.stores if Path(store.path).is_relative_to(project)]
    known = [gate.until for gate in gates if gate and gate.state == report.state and gate.until is not None]
    times = [until for until in (report.until, *known) if until is not None and until >= context.now()]
    return report._replace(until=min(times, default=report.until))


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
        lines.append(f"\nCheck again at {format_timestamp(report.until, now)}.")
    return "\n".join(lines)


def begin(context: CommandContext, *, name: str, project: Path, pid: int | None, ttl: float) -> None:
    """Run `echod workflow begin`."""
    if not name.strip() or not name.isprintable() or len(name) > _MAX_NAME_LENGTH:
        raise UsageError(
            f"{name!r} is not a valid name of a workflow: use 1 to {_MAX_NAME_LENGTH} printable characters."
        )
    name = redact(name).text
    root = context.find_project(project)
    owner = pid if pid is not None else _claude_pid(context)
    until = context.now() + ttl * 60
    with Database.open(context.paths.database) as database:
        WorkflowLog(database).begin(
            str(root), name, pid=owner, pid_started=_process_start_time(owner), until=until, now=context.now()
        )
    context.notify_daemon()
    end_text = f"{f'process {owner} ends or ' if owner else ''}at {format_timestamp(until, context.now())}"
    context.print_info(f"{name} runs in {short_path(str(root))}. No memory is written there until")
    context.print_info(f"`echod workflow end {name}`, or {'when ' if owner else ''}{end_text}.")


def end(context: CommandContext, *, name: str, project: Path) -> None:
    """Run `echod workflow end`."""
    root, name = context.find_project(project), redact(name).text
    with Database.open(context.paths.database) as database:
        ended = WorkflowLog(database).end(str(root), name, context.now())
    if not ended:
        report_already_so(context, f"no workflow {name!r} is running in {short_path(str(root))}")
    context.notify_daemon()
    context.print_info(f"{name} has ended.")


def _claude_pid(context: CommandContext) -> int | None:
    text = context.environ.get(_CLAUDE_PID_VARIABLE, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) > 1 else None


def _process_start_time(pid: int | None) -> float | None:
    if pid is None:
        return None
    process = SystemProcessTable().lookup(pid)
    if process.state is ProcessState.DEAD:
        raise UsageError(f"There is no process {pid}. Without --pid the workflow ends after --ttl.")
    return process.started
