"""`echod status` for people: one screen that says how it is, what waits and why, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from echod.cli.output import WIDTH, fit_path, format_duration, format_timestamp, pluralize, sanitize, wrap
from echod.contract.status import (
    MAX_COUNTED_FINDINGS,
    Health,
    HookEventCount,
    PackInfo,
    RoleInfo,
    StatusReport,
    StatusWarning,
    StoreInfo,
    WaitingJob,
)

_MAX_SHOWN_STORES = 12
_MAX_SHOWN_HOOKS = 8


def render_status(report: StatusReport, now: float) -> str:
    """The whole screen, without a final newline."""
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
    if report.packs:
        yield "\nDoc packs"
        for pack in report.packs:
            yield _pack_line(pack)
    if report.hooks:
        yield "\nReported by agents"
        for hook in report.hooks[:_MAX_SHOWN_HOOKS]:
            yield _hook_line(hook)
    last_successes = {kind: info.last_success for kind, info in report.jobs.items() if info.last_success is not None}
    if last_successes:
        yield "\nLast done"
        for kind, at in sorted(last_successes.items()):
            yield f"  {kind:<13} {format_duration(now - at)} ago"


def _headline(report: StatusReport) -> str:
    daemon = report.daemon
    if daemon is None:
        return "echod is not running"
    words = {Health.HEALTHY: "is healthy", Health.DEGRADED: "needs a look", Health.DOWN: "does not answer"}
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
    return f"Jobs: {summary}." if summary else "Nothing waits."


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
    review = f"  {store.review} to look at (echod review)" if store.review else ""
    yield f"  {fit_path(store.path, WIDTH - 2 - len(state + review))}{state}{review}"
    if store.problem:
        yield wrap(store.problem, indent="    ! ")
    for role in store.roles:
        yield from _role_lines(role)


def _pack_line(pack: PackInfo) -> str:
    state = {True: "stale", False: "fresh", None: "age not known"}[pack.stale]
    return wrap(f"{sanitize(pack.version) or 'version not known'}, {state}", indent=f"  {pack.name:<13} ")


def _hook_line(hook: HookEventCount) -> str:
    return wrap(f"{hook.event}: {hook.outcome}", indent=f"  {hook.count:>6} x  ", hang=" " * 11)


def findings_count_text(roles: Sequence[RoleInfo]) -> str:
    """How many findings files wait in these roles, of which no more than `MAX_COUNTED_FINDINGS` each were counted."""
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
