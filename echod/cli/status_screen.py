"""The screen of `echod status`: a headline, counted warnings, and a line for each project.

Roles are listed only if something needs attention. `-v` lists everything. Widths are those of the terminal, and a long
name takes a line of its own, so that it never moves a column.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from textwrap import shorten

from echod.cli.output import (
    fit_path,
    format_duration,
    format_timestamp,
    sanitize,
    screen_width,
    short_path,
    shorten_paths,
    wrap,
)
from echod.contract.status import (
    MAX_COUNTED_FINDINGS,
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
)
from echod.memory.text import pluralize
from echod.store.layout import STORE_DIRS

_MAX_STORES = 12
_MAX_WARNINGS = 5
_MAX_HOOKS = 8
_MAX_ROLES = 3
_MAX_REASON = 120
_NAME_WIDTH = 24
_GATE_WORDS = {"active": "busy"}
"""The words of the screen for the states of the gate. "active" would read like a good sign of the service."""


class Detail(Enum):
    """How much of a status is shown."""

    SUMMARY = "summary"
    FULL = "full"


def render_status(report: StatusReport, now: float, detail: Detail = Detail.SUMMARY) -> str:
    """Format the status for the terminal, without a final newline."""
    return "\n".join(_status_lines(report, now, detail))


def _status_lines(report: StatusReport, now: float, detail: Detail) -> Iterator[str]:
    yield _headline(report)
    yield wrap(_counts_line(report))
    yield from _warnings(report.warnings, now, detail)
    if detail is Detail.FULL:
        yield from _full_sections(report, now)
        return
    if report.stores:
        yield "\nProjects"
        yield from _project_lines(report, now)
    yield from _summaries(report)
    yield "\nMore: echod status -v, or echod status PATH"


def _headline(report: StatusReport) -> str:
    daemon = report.daemon
    if daemon is None:
        return "echod is not running"
    words = {Health.HEALTHY: "is healthy", Health.DEGRADED: "needs attention", Health.DOWN: "does not answer"}
    facts = f"{daemon.version}, pid {daemon.pid}, up {format_duration(daemon.uptime_seconds)}"
    return f"echod {words[report.health]}  ({facts})"


def _counts_line(report: StatusReport) -> str:
    roles = [role for store in report.stores for role in store.roles]
    entries = sum(sum(role.entries.values()) for role in roles)
    projects = len({_project_of(store.path) for store in report.stores})
    size = ", ".join(
        [pluralize(projects, "project"), pluralize(len(roles), "role"), pluralize(entries, "entry", "entries")]
    )
    return f"{size if report.stores else 'No project is registered'}. {_queue_sentence(report)}"


def _queue_sentence(report: StatusReport) -> str:
    queue = report.queue
    parts = [
        f"{queue.running} running" if queue.running else "",
        f"{queue.queued} queued" if queue.queued else "",
        f"{queue.deferred} deferred" if queue.deferred else "",
        f"{queue.dead} given up" if queue.dead else "",
    ]
    summary = ", ".join(part for part in parts if part)
    return f"Jobs: {summary}." if summary else "No jobs are waiting."


def _warnings(warnings: Sequence[StatusWarning], now: float, detail: Detail) -> Iterator[str]:
    """Format the warnings: their number first if there are several, the most severe on top."""
    order = [Severity.ERROR, Severity.WARNING, Severity.NOTICE]
    ranked = sorted(warnings, key=lambda warning: order.index(warning.severity))
    counts = {severity: sum(one.severity is severity for one in ranked) for severity in order}
    if len(ranked) > 1:
        yield "\n" + ", ".join(pluralize(count, severity.value) for severity, count in counts.items() if count)
    elif ranked:
        yield ""
    shown = ranked if detail is Detail.FULL else ranked[:_MAX_WARNINGS]
    for warning in shown:
        yield from _warning_lines(warning, now)
    if hidden := len(ranked) - len(shown):
        yield f"  ... and {hidden} more: echod status -v"


def _warning_lines(warning: StatusWarning, now: float) -> Iterator[str]:
    since = f", since {format_timestamp(warning.since, now)}" if warning.since < now else ""
    mark = "- " if warning.severity is Severity.NOTICE else "! "
    yield wrap(f"{shorten_paths(warning.text)} [{warning.code}{since}]", indent=mark)
    if warning.fix:
        yield wrap(shorten_paths(warning.fix), indent="  > ", hang="    ")


def _project_of(store: str) -> str:
    """Return the directory of the project that a store belongs to."""
    for directory in map(str, STORE_DIRS):
        if store.endswith(f"/{directory}"):
            return store.removesuffix(f"/{directory}")
    return store


def _project_lines(report: StatusReport, now: float) -> Iterator[str]:
    """Format a line for each project: its name, its state, and what needs attention."""
    waiting: defaultdict[str, list[WaitingJob]] = defaultdict(list)
    for job in report.waiting:
        waiting[job.store].append(job)
    # Stores in which something is up come first, so that the limit never hides them.
    details = {store.path: _attention(store, waiting[store.path], now) for store in report.stores}
    stores = sorted(report.stores, key=lambda store: not details[store.path])
    names = _names([store.path for store in stores])
    columns = min(max(map(len, names.values())), screen_width() * 2 // 5)
    for store in stores[:_MAX_STORES]:
        name, state = fit_path(names[store.path], columns), _state_word(store)
        head = f"  {name:<{columns}}  {state:<6}  "
        text = "; ".join(details[store.path])
        yield wrap(text, indent=head).rstrip() if text else head.rstrip()
    if (hidden := len(stores) - _MAX_STORES) > 0:
        calm = sum(not details[store.path] for store in stores[_MAX_STORES:])
        quiet = ", all calm" if calm == hidden else ""
        yield f"  ... and {pluralize(hidden, 'more store')}{quiet}: echod status -v"


def _names(stores: Sequence[str]) -> Mapping[str, str]:
    """Return the name of each store: its project, or its own path if the project has two."""
    projects = [_project_of(store) for store in stores]
    return {
        store: short_path(project if projects.count(project) == 1 else store)
        for store, project in zip(stores, projects, strict=True)
    }


def _state_word(store: StoreInfo) -> str:
    if store.paused:
        return "paused"
    if store.gate is None:
        return "-"
    return _GATE_WORDS.get(store.gate.state, store.gate.state)


def _attention(store: StoreInfo, waiting: Sequence[WaitingJob], now: float) -> list[str]:
    """Return what is up in a store, as clauses; nothing for a calm store."""
    parts = [sanitize(store.problem)] if store.problem else []
    parts += [f"{role.name}: {sanitize(role.problem)}" for role in store.roles if role.problem]
    over = [role for role in store.roles if _is_over(role)]
    parts += [f"{role.name} {role.lines}/{role.limit} lines OVER" for role in over[:_MAX_ROLES]]
    if (hidden := len(over) - _MAX_ROLES) > 0:
        parts.append(f"{pluralize(hidden, 'more role')} over the limit")
    if store.review:
        parts.append(f"{store.review} to review (echod review)")
    if store.quarantined:
        parts.append(f"{store.quarantined} in quarantine")
    if any(role.findings for role in store.roles):
        parts.append(findings_count_text(store.roles))
    if waiting:
        first = min(waiting, key=lambda job: job.due)
        verb = "waits" if len(waiting) == 1 else "wait"
        parts.append(f"{pluralize(len(waiting), 'job')} {verb}: {_reason(first, now)}")
    return parts


def _reason(job: WaitingJob, now: float) -> str:
    again = f", again at {format_timestamp(job.due, now)}" if job.due > now and job.state == "deferred" else ""
    return f"{shorten(sanitize(job.reason), _MAX_REASON, placeholder='...')}{again}"


def _is_over(role: RoleInfo) -> bool:
    return role.lines is not None and role.lines > role.limit


def _summaries(report: StatusReport) -> Iterator[str]:
    """Format what else needs attention, in one line for each subject."""
    lines: list[str] = []
    if stale := [pack.name for pack in report.packs if pack.stale]:
        names = ", ".join(stale[:_MAX_ROLES]) + (", ..." if len(stale) > _MAX_ROLES else "")
        lines.append(f"{pluralize(len(stale), 'doc pack')} stale ({names}): echod packs status")
    expiring = sum(sessions.expiring for sessions in report.sessions)
    if expiring:
        noun = pluralize(expiring, "session is", "sessions are")
        lines.append(f"{noun} deleted soon by the host and not archived: echod sessions archive")
    for sessions in report.sessions:
        if sessions.pressure not in ("", "none"):
            name = fit_path(sessions.project, _NAME_WIDTH)
            lines.append(f"{name}: the summary of the conversations is {sessions.memory_percent}% full")
    if lines:
        yield "\nAlso"
        yield from (wrap(line, indent="  ") for line in lines)


def _full_sections(report: StatusReport, now: float) -> Iterator[str]:
    if report.waiting:
        yield "\nWaiting"
        for job in report.waiting:
            yield from _waiting_lines(job, now)
    if report.stores:
        yield "\nMemory"
        for store in report.stores:
            yield from _store_lines(store)
    if report.sessions:
        yield "\nConversations"
        for sessions in report.sessions:
            yield from _sessions_lines(sessions)
    if report.packs:
        yield "\nDoc packs"
        for pack in report.packs:
            yield _pack_line(pack)
    if report.hooks:
        yield "\nHook events"
        for hook in report.hooks[:_MAX_HOOKS]:
            yield _hook_line(hook)
    yield from _evidence_lines(report)
    last_successes = {kind: info.last_success for kind, info in report.jobs.items() if info.last_success is not None}
    if last_successes:
        yield "\nLast runs"
        for kind, at in sorted(last_successes.items()):
            yield f"  {kind:<13} {format_duration(now - at)} ago"


def _evidence_lines(report: StatusReport) -> Iterator[str]:
    if report.evidence:
        order = ("valid", "moved", "changed", "gone", "unknown")
        counts = ", ".join(f"{report.evidence[state]} {state}" for state in order if report.evidence.get(state))
        yield f"\nEvidence\n  {counts} (echod verify)"
    if report.recall.offers:
        recall = report.recall
        shown = pluralize(recall.offers, "time", "times")
        entries, sessions = pluralize(recall.entries, "entry", "entries"), pluralize(recall.sessions, "session")
        yield f"\nRecall\n  {entries} shown {shown} in {sessions} (echod log --recall)"


def _waiting_lines(job: WaitingJob, now: float) -> Iterator[str]:
    name = f"{job.kind} {job.role}".strip()
    yield f"  {name}"
    yield f"    {fit_path(job.store, screen_width() - 4)}"
    when = f" (again at {format_timestamp(job.due, now)})" if job.due > now and job.state == "deferred" else ""
    yield wrap(f"{job.state}: {job.reason}{when}", indent="    ")


def _store_lines(store: StoreInfo) -> Iterator[str]:
    review = f"  {store.review} to review (echod review)" if store.review else ""
    state = f"  {_state_word(store)}" if store.gate or store.paused else ""
    yield f"  {fit_path(store.path, screen_width() - 2 - len(state + review))}{state}{review}"
    if store.problem:
        yield wrap(store.problem, indent="    ! ")
    width = min(max((len(role.name) for role in store.roles), default=0), _NAME_WIDTH)
    for role in store.roles:
        yield from _role_lines(role, width)


def _role_lines(role: RoleInfo, width: int) -> Iterator[str]:
    """Format a role. A name that is longer than its column has a line of its own."""
    lines = "unreadable" if role.lines is None else f"{role.lines}/{role.limit} lines"
    over = " OVER" if _is_over(role) else ""
    layers = ", ".join(f"{number} {layer_noun(layer, number)}" for layer, number in _ordered(role.entries) if number)
    waiting = findings_count_text([role]) if role.findings else ""
    details = "; ".join(part for part in (layers or "no entries", waiting) if part)
    name = role.name
    if len(name) > width:
        yield f"    {name}"
        name = ""
    yield wrap(details, indent=f"    {name:<{width}} {lines + over:<20} ")
    if role.problem:
        yield wrap(role.problem, indent="      ! ")


_LAYERS = ("etched", "notes", "inscribed", "observations", "traced")


def _ordered(entries: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the layers in the order of their importance, unknown ones last."""
    yield from ((layer, entries[layer]) for layer in _LAYERS if layer in entries)
    yield from ((layer, number) for layer, number in entries.items() if layer not in _LAYERS)


def layer_noun(layer: str, number: int) -> str:
    """Return the layer as a noun: `1 observation`, `2 observations`."""
    return layer.removesuffix("s") if number == 1 and layer in ("notes", "observations") else layer


def _sessions_lines(sessions: SessionsInfo) -> Iterator[str]:
    yield f"  {fit_path(sessions.project, screen_width() - 2)}"
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
    return f"{pluralize(number, 'findings file')} waiting" if number else "no findings waiting"


def only_project(report: StatusReport, project: Path) -> StatusReport:
    """Return the status of one project: its stores, jobs and conversations. Warnings and totals stay."""
    root = str(project)
    return replace(
        report,
        stores=tuple(store for store in report.stores if _project_of(store.path) == root),
        waiting=tuple(job for job in report.waiting if _project_of(job.store) == root),
        sessions=tuple(sessions for sessions in report.sessions if sessions.project == root),
        packs=(),
        hooks=(),
    )
