"""`echod status`: print the daemon's status snapshot, or without a daemon the status from database and disk.

The snapshot is printed without loading anything that reads memory, since many scripts and prompts run this command.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import click

from echod import __version__
from echod.cli import options
from echod.cli.context import CommandContext
from echod.cli.output import (
    WIDTH,
    fit_path,
    format_duration,
    format_timestamp,
    pluralize,
    sanitize,
    wrap,
)
from echod.cli.root import example, pass_command_context
from echod.contract.status import (
    MAX_COUNTED_FINDINGS,
    DaemonInfo,
    Health,
    HookEventCount,
    PackInfo,
    RoleInfo,
    SessionsInfo,
    Severity,
    StatusReport,
    StatusWarning,
    StoreInfo,
    WaitingJob,
    status_from_json,
    to_json,
)
from echod.errors import ConfigurationError, ExitCode, StateError
from echod.files import read_regular
from echod.paths import Paths
from echod.runtime.heartbeat import DaemonState, Liveness, read_heartbeat, read_liveness
from echod.runtime.locks import read_lock_state

_MAX_SHOWN_STORES = 12
_MAX_SHOWN_HOOKS = 8
_MAX_SNAPSHOT_BYTES = 8 * 1024 * 1024
_STARTUP_GRACE_SECONDS = 3.0


@click.command(epilog=example("echod status --json"))
@options.json
@pass_command_context
def status(context: CommandContext, *, json: bool) -> None:
    """Show service health, queued work and warnings.

    Exits with 0 (healthy), 1 (needs attention), 3 (not running) or 4 (running, but not answering).
    """
    liveness = check_liveness(context)
    now = context.now()
    snapshot = _read_snapshot(context, liveness, now)
    report = _collect(context, liveness, now) if snapshot is None else _with_settings_check(context, snapshot, now)
    click.echo(to_json(report) if json else context.colored(render_status(report, now)))
    raise click.exceptions.Exit(_exit_code(liveness, report))


def check_liveness(context: CommandContext) -> Liveness:
    """Check from outside whether the daemon runs and answers. A starting daemon gets a moment to do so."""
    deadline = time.monotonic() + _STARTUP_GRACE_SECONDS
    while True:
        try:
            liveness = read_liveness(context.paths, __version__, time.monotonic())
        except OSError as error:
            raise StateError(
                f"{error.filename} cannot be read: {error.strerror}. It belongs to another user or is damaged."
            ) from error
        if liveness.state is not DaemonState.STARTING or time.monotonic() > deadline:
            return liveness
        time.sleep(0.1)


def _read_snapshot(context: CommandContext, liveness: Liveness, now: float) -> StatusReport | None:
    """Read the daemon's snapshot. Return None if it does not answer, or the snapshot has an unknown format."""
    if not liveness.is_answering or liveness.heartbeat is None:
        return None
    try:
        report = status_from_json(read_regular(context.paths.status_snapshot, _MAX_SNAPSHOT_BYTES).decode())
    except (OSError, ValueError):
        return None
    info = DaemonInfo(liveness.heartbeat.pid, liveness.heartbeat.version, now - liveness.heartbeat.started_at)
    report = replace(report, daemon=info)
    if liveness.state is DaemonState.RUNNING:
        return report
    return _with_warning(report, Health.DEGRADED, _daemon_warning(context, liveness, now))


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
    # Loads what reads memory. With a snapshot, the status does without.
    from echod.status.collect import StatusCollector

    heartbeat = liveness.heartbeat
    daemon = DaemonInfo(heartbeat.pid, heartbeat.version, now - heartbeat.started_at) if heartbeat is not None else None
    try:
        with context.open_read_context() as read_context, read_context.snapshot():
            discovered = read_context.discover_stores()
            collector = StatusCollector(read_context)
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
    from echod.service.paths import recovery_hint, state_of_service  # loads subprocess and importlib.resources

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
    return replace(warning, since=now if since is None else min(since, now))


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


def render_status(report: StatusReport, now: float) -> str:
    """Format the status for the terminal, without a final newline."""
    return "\n".join(_status_lines(report, now))


def _status_lines(report: StatusReport, now: float) -> Iterator[str]:
    yield _headline(report)
    yield wrap(_queue_line(report))
    for warning in report.warnings:
        yield from _warning_lines(warning, now)
    if report.waiting:
        yield "\nWaiting"
        for job in report.waiting:
            yield from _waiting_lines(job, now)
    if report.stores:
        yield "\nMemory"
        for store in report.stores[:_MAX_SHOWN_STORES]:
            yield from _store_lines(store)
        if (hidden := len(report.stores) - _MAX_SHOWN_STORES) > 0:
            yield f"  ... and {pluralize(hidden, 'more store')} (all with --json)"
    if report.sessions:
        yield "\nConversations"
        for archived in report.sessions:
            yield from _sessions_lines(archived)
    if report.packs:
        yield "\nDoc packs"
        for pack in report.packs:
            yield _pack_line(pack)
    if report.hooks:
        yield "\nHook events"
        for hook in report.hooks[:_MAX_SHOWN_HOOKS]:
            yield _hook_line(hook)
    if report.evidence:
        order = ("valid", "moved", "changed", "gone", "unknown")
        counts = ", ".join(f"{report.evidence[state]} {state}" for state in order if report.evidence.get(state))
        yield f"\nEvidence\n  {counts} (echod verify)"
    if report.recall.offers:
        recall = report.recall
        shown = pluralize(recall.offers, "time", "times")
        entries, sessions = pluralize(recall.entries, "entry", "entries"), pluralize(recall.sessions, "session")
        yield f"\nRecall\n  {entries} shown {shown} in {sessions} (echod log --recall)"
    last_successes = {kind: info.last_success for kind, info in report.jobs.items() if info.last_success is not None}
    if last_successes:
        yield "\nLast runs"
        for kind, at in sorted(last_successes.items()):
            yield f"  {kind:<13} {format_duration(now - at)} ago"


def _headline(report: StatusReport) -> str:
    daemon = report.daemon
    if daemon is None:
        return "echod is not running"
    words = {Health.HEALTHY: "is healthy", Health.DEGRADED: "needs attention", Health.DOWN: "does not answer"}
    facts = f"version {daemon.version}, pid {daemon.pid}, up {format_duration(daemon.uptime_seconds)}"
    return f"echod {words[report.health]}  ({facts})"


def _queue_line(report: StatusReport) -> str:
    queue = report.queue
    parts = [
        f"{queue.running} running" if queue.running else "",
        f"{queue.queued} queued" if queue.queued else "",
        f"{queue.deferred} deferred" if queue.deferred else "",
        f"{queue.dead} given up" if queue.dead else "",
    ]
    summary = ", ".join(part for part in parts if part)
    return f"Jobs: {summary}." if summary else "No jobs are waiting."


def _warning_lines(warning: StatusWarning, now: float) -> Iterator[str]:
    yield ""
    since = f", since {format_timestamp(warning.since, now)}" if warning.since < now else ""
    yield wrap(f"{warning.text} [{warning.code}{since}]", indent="! ")
    if warning.fix:
        yield wrap(warning.fix, indent="  > ", hang="    ")


def _waiting_lines(job: WaitingJob, now: float) -> Iterator[str]:
    name = f"{job.kind} {job.role}".strip()
    yield f"  {name}"
    yield f"    {fit_path(job.store, WIDTH - 4)}"
    when = f" (again at {format_timestamp(job.due, now)})" if job.due > now and job.state == "deferred" else ""
    yield wrap(f"{job.state}: {job.reason}{when}", indent="    ")


def _store_lines(store: StoreInfo) -> Iterator[str]:
    states = [store.gate.state if store.gate else "", "paused" if store.paused else ""]
    state = f"  [{', '.join(filter(None, states))}]" if any(states) else ""
    review = f"  {store.review} to review (echod review)" if store.review else ""
    yield f"  {fit_path(store.path, WIDTH - 2 - len(state + review))}{state}{review}"
    if store.problem:
        yield wrap(store.problem, indent="    ! ")
    for role in store.roles:
        yield from _role_lines(role)


def _sessions_lines(sessions: SessionsInfo) -> Iterator[str]:
    yield f"  {fit_path(sessions.project, WIDTH - 2)}"
    expiring = f", {sessions.expiring} deleted soon" if sessions.expiring else ""
    facts = (
        f"{pluralize(sessions.archives, 'archive')}; {sessions.waiting} waiting{expiring}; "
        f"the host keeps {pluralize(sessions.host_days, 'day')}"
    )
    yield wrap(facts, indent="    ")


def _pack_line(pack: PackInfo) -> str:
    state = {True: "stale", False: "fresh", None: "age not known"}[pack.stale]
    return wrap(f"{sanitize(pack.version) or 'version not known'}, {state}", indent=f"  {pack.name:<13} ")


def _hook_line(hook: HookEventCount) -> str:
    return wrap(f"{hook.event}: {hook.outcome}", indent=f"  {hook.count:>6} x  ", hang=" " * 11)


def findings_count_text(roles: Sequence[RoleInfo]) -> str:
    """Format the number of waiting findings files. At most `MAX_COUNTED_FINDINGS` are counted in a role."""
    number = sum(role.findings for role in roles)
    if any(role.findings >= MAX_COUNTED_FINDINGS for role in roles):
        return f"{number} or more findings files waiting"
    return f"{pluralize(number, 'findings file')} waiting"


def _role_lines(role: RoleInfo) -> Iterator[str]:
    lines = "unreadable" if role.lines is None else f"{role.lines}/{role.limit} lines"
    over = " OVER" if role.lines is not None and role.lines > role.limit else ""
    layers = ", ".join(f"{number} {layer}" for layer, number in role.entries.items() if number)
    waiting = findings_count_text([role]) if role.findings else ""
    details = "; ".join(part for part in (layers or "no entries", waiting) if part)
    yield wrap(details, indent=f"    {role.name:<13} {lines + over:<20} ")
    if role.problem:
        yield wrap(role.problem, indent="      ! ")
