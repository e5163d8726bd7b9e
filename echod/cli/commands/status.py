"""`echod status`: print the daemon's status snapshot, or without a daemon the status from database and disk.

The snapshot is printed without loading anything that reads memory, since many scripts and prompts run this command.
"""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import click

from echod.cli.context import CommandContext, check_liveness
from echod.cli.output import draw_screen
from echod.cli.status_screen import Detail, only_project, render_status
from echod.contract.codec import to_json
from echod.contract.status import (
    DaemonInfo,
    Health,
    RecallInfo,
    Severity,
    StatusReport,
    StatusWarning,
    status_from_json,
)
from echod.errors import ConfigurationError, ExitCode, StateError, UsageError
from echod.files import read_regular
from echod.hooks.offers import DIRECTORY
from echod.lazy import lazy_imports
from echod.paths import Paths
from echod.runtime.heartbeat import DaemonState, Liveness, read_heartbeat
from echod.runtime.locks import read_lock_state
from echod.service.paths import recovery_hint, state_of_service

with lazy_imports(__name__):
    from echod.inbox import spool
    from echod.status import collect

_MAX_SNAPSHOT_BYTES = 8 * 1024 * 1024
_WATCH_INTERVAL_SECONDS = 2.0


class _Status(NamedTuple):
    """The status at one moment."""

    report: StatusReport
    liveness: Liveness
    now: float


def status(context: CommandContext, *, path: Path | None, verbose: bool, watch: bool, json: bool) -> None:
    """Run `echod status`."""
    project = None if path is None else context.find_project(path)
    detail = Detail.FULL if verbose or project is not None else Detail.SUMMARY
    if watch:
        if json or not sys.stdout.isatty():
            raise UsageError("--watch needs a terminal, and cannot print JSON. Run `echod status` without it.")
        _watch(context, project, detail)
        return
    current = _read_status(context, project)
    click.echo(to_json(current.report) if json else context.colored(render_status(current.report, current.now, detail)))
    raise click.exceptions.Exit(_exit_code(current.liveness, current.report))


def _read_status(context: CommandContext, project: Path | None) -> _Status:
    liveness = check_liveness(context)
    now = context.now()
    snapshot = _read_snapshot(context, liveness, now)
    report = _collect(context, liveness, now) if snapshot is None else _with_settings_check(context, snapshot, now)
    return _Status(report if project is None else only_project(report, project), liveness, now)


def _watch(context: CommandContext, project: Path | None, detail: Detail) -> None:
    """Draw the status again and again, until the user interrupts it."""
    try:
        while True:
            current = _read_status(context, project)
            draw_screen(context.colored(render_status(current.report, current.now, detail)))
            time.sleep(_WATCH_INTERVAL_SECONDS)
    except KeyboardInterrupt:
        click.echo()


def _read_snapshot(context: CommandContext, liveness: Liveness, now: float) -> StatusReport | None:
    """Read the daemon's snapshot. Return None if it does not answer, or the snapshot has an unknown format."""
    if not liveness.is_answering or liveness.heartbeat is None:
        return None
    try:
        report = status_from_json(read_regular(context.paths.status_snapshot, _MAX_SNAPSHOT_BYTES).decode())
    except (OSError, ValueError):
        return None
    info = DaemonInfo(liveness.heartbeat.pid, liveness.heartbeat.version, now - liveness.heartbeat.started_at)
    report = replace(report, daemon=info, recall=_count_offers(context.paths))
    if liveness.state is DaemonState.RUNNING:
        return report
    return _with_warning(report, Health.DEGRADED, _daemon_warning(context, liveness, now))


def _count_offers(paths: Paths) -> RecallInfo:
    """Count the entries that hooks showed to agents, since hooks do not notify the daemon of them."""
    if not (paths.state / DIRECTORY).exists():
        return RecallInfo()
    return spool.count_offers(paths.state)


def _with_settings_check(context: CommandContext, report: StatusReport, now: float) -> StatusReport:
    """Add a warning if the settings are invalid now: the running service has earlier ones, and the next has none.

    Raises:
        ConfigurationError: the file that the command line names does not exist.
    """
    try:
        _ = context.settings
    except ConfigurationError as error:
        if context.environ.get("ECHOD_CONFIG") and not context.paths.config_file.exists():
            raise
        text = f"The service works with earlier settings, and will not start again with these: {error}"
        warning = StatusWarning("settings-invalid", Severity.WARNING, now, text, "Check them with: echod config check")
        return _with_warning(report, Health.DEGRADED, warning)
    return report


def _collect(context: CommandContext, liveness: Liveness, now: float) -> StatusReport:
    """Collect the status without the daemon."""
    heartbeat = liveness.heartbeat
    daemon = DaemonInfo(heartbeat.pid, heartbeat.version, now - heartbeat.started_at) if heartbeat is not None else None
    try:
        with context.open_read_context() as read_context, read_context.snapshot():
            discovered = read_context.discover_stores()
            collector = collect.StatusCollector(read_context)
            collector.inspect(discovered.stores, now)
            collector.invalidate_packs(discovered.projects)
            collector.inspect_packs(now)
            report = collector.report(discovered, now, daemon=daemon)
            read_context.save_inspections()
    except StateError as error:
        # The state of the daemon is known all the same, and may be the cause.
        warning = StatusWarning("database-unreadable", Severity.ERROR, now, str(error), "")
        report = StatusReport(Health.DOWN if daemon is None else Health.DEGRADED, (warning,), daemon)
    if liveness.state is DaemonState.UPGRADED:
        return _with_warning(report, Health.DEGRADED, _daemon_warning(context, liveness, now))
    if liveness.is_answering:
        return report
    warning = _daemon_warning(context, liveness, now)
    if liveness.state is DaemonState.STOPPED:
        warning = _since_last_sign(context, warning, report, now)
    return _with_warning(report, Health.DOWN, warning)


def _with_warning(report: StatusReport, health: Health, warning: StatusWarning) -> StatusReport:
    return replace(report, health=health, warnings=(warning, *report.warnings))


def _daemon_warning(context: CommandContext, liveness: Liveness, now: float) -> StatusWarning:
    """Return the warning about the state of the daemon."""
    since = liveness.heartbeat.beat_at if liveness.heartbeat is not None else now
    severity = Severity.WARNING if liveness.state is DaemonState.UPGRADED else Severity.ERROR
    fix = recovery_hint(liveness, sys.platform, context.environ)
    if liveness.state is DaemonState.STOPPED and (other := state_of_service(sys.platform, context.environ)):
        show = f"ECHOD_STATE_DIR={shlex.quote(str(other))} echod status"
        fix = f"The service keeps its state in {other}, and this command in {context.paths.state}. Run: {show}"
    return StatusWarning(f"daemon-{liveness.state.value}", severity, min(since, now), liveness.text, fix)


def _since_last_sign(
    context: CommandContext, warning: StatusWarning, report: StatusReport, now: float
) -> StatusWarning:
    """Date the warning that no daemon runs back to its last sign of life."""
    since = _last_sign_of_life(context.paths, report)
    return warning._replace(since=now if since is None else min(since, now))


def _last_sign_of_life(paths: Paths, report: StatusReport) -> float | None:
    """Return when a daemon was last known to run (Unix seconds).

    A killed daemon leaves its heartbeat. A daemon that ended cleanly leaves only its start time and its jobs.
    """
    owner, heartbeat = read_lock_state(paths.daemon_lock).owner, read_heartbeat(paths.heartbeat)
    if heartbeat is not None:
        return max(heartbeat.beat_at, owner.since if owner is not None else 0.0)
    job_times = (at for info in report.jobs.values() for at in (info.last_success, info.last_failure))
    times = (None if owner is None else owner.since, *job_times)
    return max((at for at in times if at is not None), default=None)


def _exit_code(liveness: Liveness, report: StatusReport) -> ExitCode:
    if liveness.state is DaemonState.STOPPED:
        return ExitCode.NOT_RUNNING
    if not liveness.is_answering:
        return ExitCode.NOT_ANSWERING
    return ExitCode.OK if report.health is Health.HEALTHY else ExitCode.FAILED
