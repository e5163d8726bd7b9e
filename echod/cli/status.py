"""`echod status`: what the daemon keeps ready, or, where none answers, what the database and the disk say."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import NoReturn

from echod import __version__
from echod.cli.shell import Shell
from echod.cli.status_text import render
from echod.contract.status import DaemonInfo, Health, Severity, StatusReport, Warn, status_from_json, to_json
from echod.errors import Exit, StateError
from echod.paths import Paths
from echod.runtime.heartbeat import Liveness, State, observe, read
from echod.runtime.locks import lock_state

_START_SECONDS = 3.0


def daemon_liveness(shell: Shell) -> Liveness:
    """How the daemon is, judged from outside; one that is just starting is given a moment."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            found = observe(shell.paths, __version__, time.monotonic())
        except OSError as error:
            raise StateError(
                f"{error.filename} cannot be read: {error.strerror}; it belongs to another user or was damaged."
            ) from error
        if found.state is not State.STARTING or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def show_status(shell: Shell, *, as_json: bool) -> NoReturn:
    """Print the status and exit with the code that says how it is."""
    live = daemon_liveness(shell)
    now = shell.now()
    report = _kept_ready(shell, live, now) or _looked_up(shell, live, now)
    print(to_json(report) if as_json else shell.painted(render(report, now)), flush=True)
    sys.exit(_exit_code(live, report))


def _kept_ready(shell: Shell, live: Liveness, now: float) -> StatusReport | None:
    """The daemon's own snapshot, if it answers and this version understands it."""
    if not live.answers or live.heartbeat is None:
        return None
    try:
        report = status_from_json(shell.paths.snapshot.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    info = DaemonInfo(live.heartbeat.pid, live.heartbeat.version, now - live.heartbeat.started_at)
    report = replace(report, daemon=info)
    return report if live.state is State.RUNNING else _with(report, Health.DEGRADED, _speaking(shell, live, now))


def _looked_up(shell: Shell, live: Liveness, now: float) -> StatusReport:
    from echod.app.context import look_out
    from echod.inspection.counts import hand_on
    from echod.status.collect import Board

    beat = live.heartbeat
    daemon = DaemonInfo(beat.pid, beat.version, now - beat.started_at) if beat is not None else None
    try:
        with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout, lookout.one_moment():
            roster = lookout.roster()
            board = Board(lookout)
            board.refresh(roster.stores, now)
            board.mark_packs(roster.projects)
            board.look_at_packs(now)
            report = board.report(roster, now, daemon=daemon)
            hand_on(lookout.counted, shell.paths.counts)
    except StateError as error:
        # How the daemon is can be told all the same, and may be the reason.
        warning = Warn("database-unreadable", Severity.ERROR, now, str(error), "")
        report = StatusReport(Health.DOWN if daemon is None else Health.DEGRADED, (warning,), daemon)
    if live.state is State.UPGRADED:
        return _with(report, Health.DEGRADED, _speaking(shell, live, now))
    if live.state is State.STOPPED:
        return _with(report, Health.DOWN, _since_when(shell, _speaking(shell, live, now), report, now))
    return report if live.answers else _with(report, Health.DOWN, _speaking(shell, live, now))


def _with(report: StatusReport, health: Health, warning: Warn) -> StatusReport:
    return replace(report, health=health, warnings=(warning, *report.warnings))


def _speaking(shell: Shell, live: Liveness, now: float) -> Warn:
    """What is wrong with the daemon, as a warning."""
    from echod.service.paths import how_to_help

    since = live.heartbeat.beat_at if live.heartbeat is not None else now
    severity = Severity.WARNING if live.state is State.UPGRADED else Severity.ERROR
    fix = how_to_help(live, sys.platform, shell.environ)
    return Warn(f"daemon-{live.state.value}", severity, min(since, now), live.text, fix)


def _since_when(shell: Shell, warning: Warn, report: StatusReport, now: float) -> Warn:
    """That no daemon runs, since its last sign of life; since now where it never gave one."""
    since = _last_sign(shell.paths, report)
    return replace(warning, since=now if since is None else min(since, now))


def _last_sign(paths: Paths, report: StatusReport) -> float | None:
    """When a daemon was last known to live (Unix seconds).

    One that was killed leaves its heartbeat. One that ended cleanly leaves only when it came, and what it did.
    """
    holder, beat = lock_state(paths.daemon_lock).holder, read(paths.heartbeat)
    if beat is not None:
        return max(beat.beat_at, holder.since if holder is not None else 0.0)
    done = (at for info in report.jobs.values() for at in (info.last_success, info.last_failure))
    signs = (None if holder is None else holder.since, *done)
    return max((at for at in signs if at is not None), default=None)


def _exit_code(live: Liveness, report: StatusReport) -> Exit:
    if live.state is State.STOPPED:
        return Exit.NOT_RUNNING
    if not live.answers:
        return Exit.NOT_ANSWERING
    return Exit.OK if report.health is Health.HEALTHY else Exit.FAILED
