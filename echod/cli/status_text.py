"""`echod status` for people: one screen that says how it is, what waits and why, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from echod.cli.text import WIDTH, count, duration, fitted, moment, paragraph, plain
from echod.contract.status import (
    FINDINGS_COUNTED,
    Health,
    HookInfo,
    PackInfo,
    RoleInfo,
    StatusReport,
    StoreInfo,
    WaitingJob,
    Warn,
)

_SHOWN_STORES = 12
_SHOWN_OUTCOMES = 8


def render(report: StatusReport, now: float) -> str:
    """The whole screen, without a final newline."""
    return "\n".join(_lines(report, now))


def _lines(report: StatusReport, now: float) -> Iterator[str]:
    yield _headline(report)
    yield paragraph(_work(report))
    for warning in report.warnings:
        yield from _warning(warning, now)
    if report.waiting:
        yield "\nWaiting"
        for job in report.waiting:
            yield from _waiting(job, now)
    if report.stores:
        yield "\nMemory"
        for store in report.stores[:_SHOWN_STORES]:
            yield from _store(store)
        if (hidden := len(report.stores) - _SHOWN_STORES) > 0:
            yield f"  ... and {count(hidden, 'more store')} (all with --json)"
    if report.packs:
        yield "\nDoc packs"
        for pack in report.packs:
            yield _pack(pack)
    if report.hooks:
        yield "\nReported by agents"
        for hook in report.hooks[:_SHOWN_OUTCOMES]:
            yield _hook(hook)
    done = {kind: info.last_success for kind, info in report.jobs.items() if info.last_success is not None}
    if done:
        yield "\nLast done"
        for kind, at in sorted(done.items()):
            yield f"  {kind:<13} {duration(now - at)} ago"


def _headline(report: StatusReport) -> str:
    daemon = report.daemon
    if daemon is None:
        return "echod is not running"
    words = {Health.HEALTHY: "is healthy", Health.DEGRADED: "needs a look", Health.DOWN: "does not answer"}
    facts = f"version {daemon.version}, pid {daemon.pid}, up {duration(daemon.uptime_seconds)}"
    return f"echod {words[report.health]}  ({facts})"


def _work(report: StatusReport) -> str:
    queue = report.queue
    parts = [
        f"{queue.running} running" if queue.running else "",
        f"{queue.queued} queued" if queue.queued else "",
        f"{queue.deferred} deferred" if queue.deferred else "",
        f"{queue.dead} given up" if queue.dead else "",
    ]
    said = ", ".join(part for part in parts if part)
    return f"Jobs: {said}." if said else "Nothing waits."


def _warning(warning: Warn, now: float) -> Iterator[str]:
    yield ""
    since = f", since {moment(warning.since, now)}" if warning.since < now else ""
    yield paragraph(f"{warning.text} [{warning.code}{since}]", indent="! ")
    if warning.fix:
        yield paragraph(warning.fix, indent="  > ", hang="    ")


def _waiting(job: WaitingJob, now: float) -> Iterator[str]:
    name = f"{job.kind} {job.role}".strip()
    yield f"  {name}"
    yield f"    {fitted(job.store, WIDTH - 4)}"
    when = f" (again at {moment(job.due, now)})" if job.due > now and job.state == "deferred" else ""
    yield paragraph(f"{job.state}: {job.reason}{when}", indent="    ")


def _store(store: StoreInfo) -> Iterator[str]:
    states = [store.gate.state if store.gate else "", "paused" if store.paused else ""]
    state = f"  [{', '.join(filter(None, states))}]" if any(states) else ""
    review = f"  {store.review} to look at (echod review)" if store.review else ""
    yield f"  {fitted(store.path, WIDTH - 2 - len(state + review))}{state}{review}"
    if store.problem:
        yield paragraph(store.problem, indent="    ! ")
    for role in store.roles:
        yield from _role(role)


def _pack(pack: PackInfo) -> str:
    state = {True: "stale", False: "fresh", None: "age not known"}[pack.stale]
    return paragraph(f"{plain(pack.version) or 'version not known'}, {state}", indent=f"  {pack.name:<13} ")


def _hook(hook: HookInfo) -> str:
    return paragraph(f"{hook.event}: {hook.outcome}", indent=f"  {hook.count:>6} x  ", hang=" " * 11)


def findings_waiting(roles: Sequence[RoleInfo]) -> str:
    """How many findings files wait in these roles, of which no more than `FINDINGS_COUNTED` each were counted."""
    number = sum(role.findings for role in roles)
    if any(role.findings >= FINDINGS_COUNTED for role in roles):
        return f"{number} or more findings files waiting"
    return f"{count(number, 'findings file')} waiting"


def _role(role: RoleInfo) -> Iterator[str]:
    lines = "unreadable" if role.lines is None else f"{role.lines}/{role.limit} lines"
    over = " OVER" if role.lines is not None and role.lines > role.limit else ""
    layers = ", ".join(f"{number} {layer}" for layer, number in role.entries.items() if number)
    waiting = findings_waiting([role]) if role.findings else ""
    said = "; ".join(part for part in (layers or "no entries", waiting) if part)
    yield paragraph(said, indent=f"    {role.name:<13} {lines + over:<20} ")
    if role.problem:
        yield paragraph(role.problem, indent="      ! ")
