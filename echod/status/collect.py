"""The status board: gathers from every room what `echod status` shows. Looks only, decides nothing.

The daemon refreshes the stores that something happened in; a command without a daemon refreshes all of them.

What `echod status` and `echod gate` say of a pause: that nothing is written although no workflow runs.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from echod.app.context import Lookout, still_runs
from echod.contract.status import (
    DaemonInfo,
    GateReason,
    GateReport,
    Health,
    HookInfo,
    KindInfo,
    QueueInfo,
    Severity,
    StatusReport,
    StoreInfo,
    WaitingJob,
    Warn,
)
from echod.errors import StateError
from echod.inspection.review import KeptBack, kept_back
from echod.paths import Paths
from echod.projects.discovery import Roster
from echod.projects.registry import Pauses, Projects
from echod.runtime.disk import has_room
from echod.state.job import BY_HAND, Job, JobState
from echod.state.job_rows import QueueView
from echod.state.repair import damaged_copies
from echod.status.packs import PackWatch
from echod.store import layout
from echod.store.layout import Store
from echod.workflows.model import Verdict

MARKER = "paused"
"""Names a pause among the reasons of a gate; it is no workflow's marker and never holds the gate itself."""


def pauses_or_warning(projects: Projects, now: float) -> tuple[Pauses | None, tuple[Warn, ...]]:
    """Who rests now; None, and a warning, where that cannot be read: unknown is not "nobody"."""
    try:
        return projects.pauses(), ()
    except StateError as error:
        return None, (Warn("pauses-unreadable", Severity.WARNING, now, str(error), "No job runs without knowing."),)


def paused_warnings(pauses: Pauses, missing: Collection[Path], now: float) -> Iterator[Warn]:
    """A notice for the pause of everything and for that of each project, other than those that are not there."""
    since = now if pauses.since is None else min(pauses.since, now)
    if pauses.everything:
        yield Warn(
            "paused", Severity.NOTICE, since, "Everything is paused: no memory is written.", _fix("echod resume")
        )
    for root in pauses.roots:
        if root not in missing:
            text = f"{root} is paused: its memory is not written."
            yield Warn("paused", Severity.NOTICE, since, text, _fix(_resume(root)))


def pause_reasons(pauses: Pauses, project: Path) -> Iterator[GateReason]:
    """What rests this project, each with how to end it."""
    if pauses.everything:
        text = "Everything is paused; let it go on with: echod resume"
        yield GateReason(MARKER, text, holds=False, since=pauses.since)
    if pauses.names(project):
        text = f"This project is paused; let it go on with: {_resume(project)}"
        yield GateReason(MARKER, text, holds=False, since=pauses.since)


def _fix(command: str) -> str:
    return f"Let it go on with: {command}"


def _resume(root: Path) -> str:
    return f"echod resume {shlex.quote(str(root))}"


WAITING_TOO_LONG_SECONDS = 900.0
_SHOWN_JOBS = 200
_INTERRUPTED = "it was interrupted: its process is gone; it is done when echod runs again"
_SHOWN_STATES = frozenset(JobState) - {JobState.DONE}


class Board:
    """What is known for `status`; one for a process, owned by one thread."""

    def __init__(self, lookout: Lookout) -> None:
        self._lookout = lookout
        self._stores: dict[str, StoreInfo] = {}
        self._asides: dict[Path, tuple[str, ...]] = {}
        self._kept: dict[str, tuple[KeptBack, ...]] = {}
        self._since: dict[tuple[str, str], float] = {}
        self._packs = PackWatch(lookout)

    def mark_packs(self, projects: Iterable[Path]) -> None:
        """Registries of doc packs, or what projects ask about them, may have changed."""
        self._packs.mark(projects)

    def look_at_packs(self, now: float) -> bool:
        """Look at the installed doc packs where something changed; whether there is something new to tell."""
        return self._packs.step(now)

    def refresh(self, stores: Iterable[Store], now: float) -> None:
        """Look at these stores again."""
        for store in stores:
            verdict = self._lookout.gatekeeper.ask(store.project, layout.stores_below(store.project), now)
            wishes = self._lookout.wishes.read(store.project)
            care = self._lookout.care_for(wishes.settings)
            self._asides[store.project] = wishes.warnings
            notes, roles = self._lookout.reader.notes(store), layout.list_roles(store)
            kept = self._kept[store.key] = kept_back(self._lookout.reader, notes)
            items = self._lookout.reviews.items(store, roles.found, notes, care, kept, now)
            counted = self._lookout.survey.of(store, roles, care.policy.memory_line_limit, gate_report(verdict))
            self._stores[store.key] = replace(counted, review=len(items))

    def expired(self, now: float) -> tuple[str, ...]:
        """The stores whose gate may have changed by time alone since they were looked at."""
        return tuple(
            key
            for key, info in self._stores.items()
            if info.gate is not None and info.gate.until is not None and info.gate.until <= now
        )

    def report(
        self, roster: Roster, now: float, *, daemon: DaemonInfo | None = None, warnings: Iterable[Warn] = ()
    ) -> StatusReport:
        """The whole status. `warnings` are those only the caller knows."""
        view = self._lookout.view
        # A running daemon took back at its start what an earlier one left.
        interrupted = () if view is None or daemon is not None else _interrupted(view)
        queue = _queue(view, interrupted, now)
        jobs = () if view is None else view.jobs(_SHOWN_STATES, _SHOWN_JOBS)
        lost = {job.id for job in interrupted}
        waiting = tuple(
            job for job in jobs if job.kind not in BY_HAND or (job.state is not JobState.DEAD and job.id not in lost)
        )
        records = {} if view is None else view.records()
        pauses, pause_trouble = pauses_or_warning(self._lookout.projects, now)
        stores = tuple(
            replace(self._stores[store.key], paused=None if pauses is None else pauses.hold(store.project))
            for store in roster.stores
            if store.key in self._stores
        )
        asides = tuple(text for project in roster.projects for text in self._asides.get(project, ()))
        rests = () if pauses is None else paused_warnings(pauses, roster.missing, now)
        own = (
            *_own_files(self._lookout.paths, now),
            *pause_trouble,
            *rests,
            *_warnings(roster, waiting, queue, stores, now),
            *self._packs.warnings(now),
        )
        kept = (kept for store in stores for kept in self._kept[store.path])
        found = (*warnings, *self._dated((*own, *_kept_back(kept), *_said(asides, now)), now))
        return StatusReport(
            health=_health(found, daemon),
            warnings=found,
            daemon=daemon,
            queue=queue,
            jobs={kind.value: KindInfo(r.last_success, r.last_failure) for kind, r in records.items()},
            waiting=tuple(_waiting(job, interrupted=job.id in lost) for job in reversed(waiting)),
            stores=stores,
            hooks=_hooks(self._lookout),
            packs=self._packs.infos,
        )

    def _dated(self, warnings: Iterable[Warn], now: float) -> tuple[Warn, ...]:
        """Each with the moment it was first seen; those that are gone are forgotten."""
        found = tuple(warnings)
        keys = {(warning.code, warning.text) for warning in found}
        self._since = {key: self._since.get(key, now) for key in keys}
        return tuple(Warn(w.code, w.severity, min(w.since, self._since[w.code, w.text]), w.text, w.fix) for w in found)


def gate_report(verdict: Verdict, pauses: Iterable[GateReason] = ()) -> GateReport:
    """A verdict in the words of the JSON contract, with the pauses that hold the project's jobs besides."""
    markers = (
        GateReason(r.marker, r.text, holds=r.holds, since=r.since, until=r.until, pid=r.pid) for r in verdict.reasons
    )
    return GateReport(state=verdict.state.value, reasons=(*pauses, *markers), until=verdict.until)


def _hooks(lookout: Lookout) -> tuple[HookInfo, ...]:
    heard = () if lookout.observed is None else lookout.observed.heard()
    never_heard = lookout.spool.dropped()
    return (
        *(HookInfo(h.event, h.outcome, h.count, h.last_at) for h in heard),
        *(HookInfo("any", reason, number) for reason, number in never_heard.items()),
    )


def _interrupted(view: QueueView) -> tuple[Job, ...]:
    """The jobs whose process is gone without a word: nobody does them now."""
    running = view.jobs({JobState.RUNNING}, _SHOWN_JOBS)
    return tuple(job for job in running if job.worker is not None and not still_runs(job.worker))


def _queue(view: QueueView | None, interrupted: Collection[Job], now: float) -> QueueInfo:
    if view is None:
        return QueueInfo()
    counts, oldest = view.counts(), view.oldest_due(now)
    return QueueInfo(
        queued=counts[JobState.QUEUED] + sum(job.kind not in BY_HAND for job in interrupted),
        deferred=counts[JobState.DEFERRED],
        running=counts[JobState.RUNNING] - len(interrupted),
        dead=counts[JobState.DEAD],
        oldest_due_seconds=None if oldest is None else max(0.0, now - oldest),
    )


def _health(warnings: Iterable[Warn], daemon: DaemonInfo | None) -> Health:
    if daemon is None:
        return Health.DOWN
    serious = any(warning.severity is not Severity.NOTICE for warning in warnings)
    return Health.DEGRADED if serious else Health.HEALTHY


def _waiting(job: Job, *, interrupted: bool) -> WaitingJob:
    return WaitingJob(
        job=job.id,
        kind=job.kind.value,
        store=job.store,
        role=job.role,
        state=JobState.QUEUED.value if interrupted else job.state.value,
        reason=_INTERRUPTED if interrupted else job.result or job.reason,
        due=job.due,
    )


def _own_files(paths: Paths, now: float) -> Iterator[Warn]:
    if not has_room(paths.state):
        text = f"There is hardly any room left on the disk that holds {paths.state}; work stands still without."
        yield Warn("disk-full", Severity.ERROR, now, text, "Free some space; echod goes on by itself then.")
    if copies := damaged_copies(paths.database):
        text = "The state database was damaged once and rebuilt; the damaged one is kept. No memory was touched."
        yield Warn("database-copies", Severity.NOTICE, now, text, f"Delete it if nobody needs it: {copies[-1]}")


def _warnings(
    roster: Roster, jobs: Iterable[Job], queue: QueueInfo, stores: Iterable[StoreInfo], now: float
) -> Iterator[Warn]:
    for project in roster.missing:
        yield Warn(
            "project-missing",
            Severity.WARNING,
            now,
            f"The project {project} is not there (deleted, moved or not mounted). It stays registered.",
            f"If it is gone for good: echod remove {project}",
        )
    for project in roster.without_store:
        yield Warn(
            "project-without-store",
            Severity.NOTICE,
            now,
            f"The project {project} has no memory directory; echod starts when one appears.",
            "",
        )
    for job in jobs:
        if job.state is JobState.DEAD:
            yield Warn(
                "job-given-up",
                Severity.WARNING,
                job.finished_at or now,
                f"{job.kind.value} of {job.role} in {job.store} was given up: {job.result}",
                f"It is tried again when its input changes, or with: echod jobs retry {job.id}",
            )
        elif job.state is JobState.QUEUED and job.attempts and job.result:
            yield Warn(
                "job-failing",
                Severity.WARNING,
                now,
                f"{job.kind.value} of {job.role} in {job.store} failed: {job.result}",
                "It is tried again by itself, and given up if that does not help.",
            )
    if queue.oldest_due_seconds is not None and queue.oldest_due_seconds > WAITING_TOO_LONG_SECONDS:
        yield Warn(
            "queue-stands-still",
            Severity.ERROR,
            now - queue.oldest_due_seconds,
            "A job has been due for too long and nothing has run it.",
            "Let echod start anew: echod service restart, or echod run.",
        )
    yield from _store_warnings(stores, now)


def _kept_back(found: Iterable[KeptBack]) -> Iterator[Warn]:
    for kept in found:
        text = f"{kept.role.store.key}/{kept.role.name}: {kept.reason}"
        yield Warn("findings-given-back", Severity.NOTICE, kept.since, text, kept.remedy)


def _said(asides: Iterable[str], now: float) -> Iterator[Warn]:
    for text in asides:
        yield Warn("project-settings", Severity.WARNING, now, text, "")


def _store_warnings(stores: Iterable[StoreInfo], now: float) -> Iterator[Warn]:
    projects: dict[Path, int] = {}
    for store in stores:
        project = Path(store.path).parents[1]
        projects[project] = projects.get(project, 0) + 1
        if store.problem:
            yield Warn("store-unreadable", Severity.WARNING, now, f"{store.path}: {store.problem}", "")
        for role in store.roles:
            if role.problem:
                text = f"{store.path}/{role.name}: {role.problem}"
                yield Warn(
                    "memory-unreadable", Severity.WARNING, now, text, "echod leaves it alone until it is mended."
                )
            if role.lines is not None and role.lines > role.limit:
                text = f"{store.path}/{role.name}: its memory file has {role.lines} lines, the limit is {role.limit}."
                command = f"echod prune {shlex.quote(str(project))} --role {role.name} --dry-run"
                fix = f"What may go, and what keeps the rest: {command}"
                yield Warn("memory-too-long", Severity.NOTICE, now, text, fix)
        for reason in store.gate.reasons if store.gate else ():
            if not reason.holds:
                yield Warn("marker-not-believed", Severity.NOTICE, reason.since or now, f"{project}: {reason.text}", "")
    for project, number in projects.items():
        if number > 1:
            yield Warn(
                "two-stores",
                Severity.NOTICE,
                now,
                f"{project} has two memory directories; each is maintained where it is.",
                "",
            )
