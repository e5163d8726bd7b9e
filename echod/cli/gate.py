"""`echod gate`: the verdict on a project, with every marker that was looked at."""

from __future__ import annotations

from pathlib import Path

import click

from echod.cli.shell import CommandContext
from echod.cli.text import format_timestamp, short_path, wrap
from echod.contract.status import GateReport, to_json
from echod.status.warnings import PAUSE_MARKER

_STATE_TEXTS = {
    "idle": "idle: its memory may be written now",
    "quiet": "quiet: it was just at work, so its memory is left alone for a moment",
    "active": "active: a workflow runs, so its memory is left alone",
}
_PAUSED_TEXT = "idle: no workflow runs; but it is paused, so its memory is left alone"


def show_gate(context: CommandContext, path: Path, *, as_json: bool) -> None:
    """Print the verdict. The exit code is 0 whatever it is."""
    from echod.app.context import open_read_context
    from echod.status.collect import gate_report
    from echod.status.warnings import pause_reasons

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
