"""`echod status`: what the daemon keeps ready, or, where none answers, what the database and the disk say."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import NoReturn

from echod import __version__
from echod.cli.shell import CommandContext
from echod.cli.status_text import render_status
from echod.contract.status import DaemonInfo, Health, Severity, StatusReport, StatusWarning, status_from_json, to_json
from echod.errors import ExitCode, StateError
from echod.paths import Paths
from echod.runtime.heartbeat import DaemonState, Liveness, read_heartbeat, read_liveness
from echod.runtime.locks import read_lock_state

_STARTUP_GRACE_SECONDS = 3.0


def check_liveness(context: CommandContext) -> Liveness:
    """How the daemon is, judged from outside; one that is just starting is given a moment."""
    deadline = time.monotonic() + _STARTUP_GRACE_SECONDS
    while True:
        try:
            liveness = read_liveness(context.paths, __version__, time.monotonic())
        except OSError as error:
            raise StateError(
                f"{error.filename} cannot be read: {error.strerror}; it belongs to another user or was damaged."
            ) from error
        if liveness.state is not DaemonState.STARTING or time.monotonic() > deadline:
            return liveness
        time.sleep(0.1)


def show_status(context: CommandContext, *, as_json: bool) -> NoReturn:
    """Print the status and exit with the code that says how it is."""
    liveness = check_liveness(context)
    now = context.now()
    report = _from_snapshot(context, liveness, now) or _collect(context, liveness, now)
    print(to_json(report) if as_json else context.colored(render_status(report, now)), flush=True)
    sys.exit(_exit_code(liveness, report))


def _from_snapshot(context: CommandContext, liveness: Liveness, now: float) -> StatusReport | None:
    """The daemon's own snapshot, if it answers and this version understands it."""
    if not liveness.is_answering or liveness.heartbeat is None:
        return None
    try:
        report = status_from_json(context.paths.status_snapshot.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    info = DaemonInfo(liveness.heartbeat.pid, liveness.heartbeat.version, now - liveness.heartbeat.started_at)
    report = replace(report, daemon=info)
    return (
        report
        if liveness.state is DaemonState.RUNNING
        else _with_warning(report, Health.DEGRADED, _daemon_warning(context, liveness, now))
    )


def _collect(context: CommandContext, liveness: Liveness, now: float) -> StatusReport:
    from echod.app.context import open_read_context
    from echod.status.collect import StatusCollector

    heartbeat = liveness.heartbeat
    daemon = DaemonInfo(heartbeat.pid, heartbeat.version, now - heartbeat.started_at) if heartbeat is not None else None
    try:
        with (
            open_read_context(context.paths, context.settings, context.environ, context.now) as read_context,
            read_context.snapshot(),
        ):
            discovered = read_context.discover_stores()
            collector = StatusCollector(read_context)
            collector.inspect(discovered.stores, now)
            collector.invalidate_packs(discovered.projects)
            collector.inspect_packs(now)
            report = collector.report(discovered, now, daemon=daemon)
            read_context.save_inspections()
    except StateError as error:
        # How the daemon is can be told all the same, and may be the reason.
        warning = StatusWarning("database-unreadable", Severity.ERROR, now, str(error), "")
        report = StatusReport(Health.DOWN if daemon is None else Health.DEGRADED, (warning,), daemon)
    if liveness.state is DaemonState.UPGRADED:
        return _with_warning(report, Health.DEGRADED, _daemon_warning(context, liveness, now))
    if liveness.state is DaemonState.STOPPED:
        return _with_warning(
            report, Health.DOWN, _with_last_sign(context, _daemon_warning(context, liveness, now), report, now)
        )
    return (
        report if liveness.is_answering else _with_warning(report, Health.DOWN, _daemon_warning(context, liveness, now))
    )


def _with_warning(report: StatusReport, health: Health, warning: StatusWarning) -> StatusReport:
    return replace(report, health=health, warnings=(warning, *report.warnings))


def _daemon_warning(context: CommandContext, liveness: Liveness, now: float) -> StatusWarning:
    """What is wrong with the daemon, as a warning."""
    from echod.service.paths import recovery_hint

    since = liveness.heartbeat.beat_at if liveness.heartbeat is not None else now
    severity = Severity.WARNING if liveness.state is DaemonState.UPGRADED else Severity.ERROR
    fix = recovery_hint(liveness, sys.platform, context.environ)
    return StatusWarning(f"daemon-{liveness.state.value}", severity, min(since, now), liveness.text, fix)


def _with_last_sign(context: CommandContext, warning: StatusWarning, report: StatusReport, now: float) -> StatusWarning:
    """That no daemon runs, since its last sign of life; since now where it never gave one."""
    since = _last_sign_of_life(context.paths, report)
    return replace(warning, since=now if since is None else min(since, now))


def _last_sign_of_life(paths: Paths, report: StatusReport) -> float | None:
    """When a daemon was last known to live (Unix seconds).

    One that was killed leaves its heartbeat. One that ended cleanly leaves only when it came, and what it did.
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
