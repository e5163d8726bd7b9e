"""`echod gate`: the verdict on a project, with every marker that was looked at."""

from __future__ import annotations

from pathlib import Path

import click

from echod.cli.shell import Shell
from echod.cli.text import moment, paragraph, short_path
from echod.contract.status import GateReport, to_json
from echod.status.collect import MARKER

_WORDS = {
    "idle": "idle: its memory may be written now",
    "quiet": "quiet: it was just at work, so its memory is left alone for a moment",
    "active": "active: a workflow runs, so its memory is left alone",
}
_RESTS = "idle: no workflow runs; but it is paused, so its memory is left alone"


def show_gate(shell: Shell, path: Path, *, as_json: bool) -> None:
    """Print the verdict. The exit code is 0 whatever it is."""
    from echod.app.context import look_out
    from echod.status.collect import gate_report, pause_reasons

    project = shell.project(path)
    now = shell.now()
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        verdict = lookout.gatekeeper.ask(project, shell.stores(project), now)
        report = gate_report(verdict, pause_reasons(lookout.projects.pauses(), project))
    click.echo(to_json(report) if as_json else shell.painted(_render(project, report, now)))


def _render(project: Path, report: GateReport, now: float) -> str:
    pauses = [reason for reason in report.reasons if reason.marker == MARKER]
    lines = [short_path(str(project)), _RESTS if pauses and report.state == "idle" else _WORDS[report.state]]
    lines += [paragraph(f"{MARKER}: {pause.text}") for pause in pauses]
    for reason in report.reasons:
        if reason in pauses:
            continue
        lines.append(f"\n{'-' if reason.holds else '!'} {reason.marker}")
        lines.append(paragraph(reason.text, indent="  "))
    if report.until is not None:
        lines.append(f"\nAsk again at {moment(report.until, now)}.")
    return "\n".join(lines)
