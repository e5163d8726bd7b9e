"""The status board: gathers from every room what `echod status` shows. Looks only, decides nothing.

The daemon refreshes the stores that something happened in; a command without a daemon refreshes all of them.

What `echod status` and `echod gate` say of a pause: that nothing is written although no workflow runs.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from echod.app.context import ReadContext, process_is_alive
from echod.contract.status import (
    DaemonInfo,
    GateReason,
    GateReport,
    Health,
    HookEventCount,
    JobKindInfo,
    QueueInfo,
    Severity,
    StatusReport,
    StatusWarning,
    StoreInfo,
    WaitingJob,
)
from echod.errors import StateError
from echod.inspection.review import RestoredFindings, find_restored_findings
from echod.paths import Paths
from echod.projects.discovery import DiscoveredStores
from echod.projects.registry import PausedProjects, ProjectRegistry
from echod.runtime.system import has_free_space
from echod.state.job import MANUAL_KINDS, Job, JobState
from echod.state.job_rows import QueueView
from echod.state.repair import list_damaged_copies
from echod.status.packs import PackStatus
from echod.store import layout
from echod.store.layout import Store
from echod.workflows.model import Verdict

PAUSE_MARKER = "paused"
"""Names a pause among the reasons of a gate; it is no workflow's marker and never holds the gate itself."""


def read_pauses(projects: ProjectRegistry, now: float) -> tuple[PausedProjects | None, tuple[StatusWarning, ...]]:
    """Who rests now; None, and a warning, where that cannot be read: unknown is not "nobody"."""
    try:
        return projects.pauses(), ()
    except StateError as error:
        return None, (
            StatusWarning("pauses-unreadable", Severity.WARNING, now, str(error), "No job runs without knowing."),
        )


def pause_warnings(pauses: PausedProjects, missing: Collection[Path], now: float) -> Iterator[StatusWarning]:
    """A notice for the pause of everything and for that of each project, other than those that are not there."""
    since = now if pauses.since is None else min(pauses.since, now)
    if pauses.all_projects:
        yield StatusWarning(
            "paused", Severity.NOTICE, since, "Everything is paused: no memory is written.", _resume_fix("echod resume")
        )
    for root in pauses.roots:
        if root not in missing:
            text = f"{root} is paused: its memory is not written."
            yield StatusWarning("paused", Severity.NOTICE, since, text, _resume_fix(_resume_command(root)))


def pause_reasons(pauses: PausedProjects, project: Path) -> Iterator[GateReason]:
    """What rests this project, each with how to end it."""
    if pauses.all_projects:
        text = "Everything is paused; let it go on with: echod resume"
        yield GateReason(PAUSE_MARKER, text, holds=False, since=pauses.since)
    if pauses.lists(project):
        text = f"This project is paused; let it go on with: {_resume_command(project)}"
        yield GateReason(PAUSE_MARKER, text, holds=False, since=pauses.since)


def _resume_fix(command: str) -> str:
    return f"Let it go on with: {command}"


def _resume_command(root: Path) -> str:
    return f"echod resume {shlex.quote(str(root))}"


QUEUE_STALLED_SECONDS = 900.0
_MAX_SHOWN_JOBS = 200
_INTERRUPTED_REASON = "it was interrupted: its process is gone; it is done when echod runs again"
_SHOWN_STATES = frozenset(JobState) - {JobState.DONE}


class StatusCollector:
    """What is known for `status`; one for a process, owned by one thread."""

    def __init__(self, read_context: ReadContext) -> None:
        self._read_context = read_context
        self._store_infos: dict[str, StoreInfo] = {}
        self._project_warnings: dict[Path, tuple[str, ...]] = {}
        self._restored_findings: dict[str, tuple[RestoredFindings, ...]] = {}
        self._first_seen: dict[tuple[str, str], float] = {}
        self._pack_status = PackStatus(read_context)

    def invalidate_packs(self, projects: Iterable[Path]) -> None:
        """Registries of doc packs, or what projects ask about them, may have changed."""
        self._pack_status.invalidate(projects)

    def inspect_packs(self, now: float) -> bool:
        """Look at the installed doc packs where something changed; whether there is something new to tell."""
        return self._pack_status.refresh(now)

    def inspect(self, stores: Iterable[Store], now: float) -> None:
        """Look at these stores again."""
        for store in stores:
            verdict = self._read_context.project_gate.check(
                store.project, layout.find_stores_in_resolved_root(store.project), now
            )
            project_settings = self._read_context.project_settings.read(store.project)
            maintenance = self._read_context.maintenance_policy_from(project_settings.settings)
            self._project_warnings[store.project] = project_settings.warnings
            notes, roles = self._read_context.reader.collect_notices(store), layout.list_roles(store)
            restored = self._restored_findings[store.key] = find_restored_findings(self._read_context.reader, notes)
            items = self._read_context.review_collector.collect(store, roles.roles, notes, maintenance, restored, now)
            store_info = self._read_context.store_inspector.inspect(
                store, roles, maintenance.policy.memory_line_limit, gate_report(verdict)
            )
            self._store_infos[store.key] = replace(store_info, review=len(items))

    def stores_with_expired_gate(self, now: float) -> tuple[str, ...]:
        """The stores whose gate may have changed by time alone since they were looked at."""
        return tuple(
            key
            for key, info in self._store_infos.items()
            if info.gate is not None and info.gate.until is not None and info.gate.until <= now
        )

    def report(
        self,
        discovered: DiscoveredStores,
        now: float,
        *,
        daemon: DaemonInfo | None = None,
        warnings: Iterable[StatusWarning] = (),
    ) -> StatusReport:
        """The whole status. `warnings` are those only the caller knows."""
        view = self._read_context.queue_view
        # A running daemon took back at its start what an earlier one left.
        interrupted = () if view is None or daemon is not None else _interrupted_jobs(view)
        queue = _queue_info(view, interrupted, now)
        jobs = () if view is None else view.list_jobs(_SHOWN_STATES, _MAX_SHOWN_JOBS)
        interrupted_ids = {job.id for job in interrupted}
        waiting = tuple(
            job
            for job in jobs
            if job.kind not in MANUAL_KINDS or (job.state is not JobState.DEAD and job.id not in interrupted_ids)
        )
        records = {} if view is None else view.kind_records()
        pauses, pause_problem = read_pauses(self._read_context.projects, now)
        stores = tuple(
            replace(self._store_infos[store.key], paused=None if pauses is None else pauses.covers(store.project))
            for store in discovered.stores
            if store.key in self._store_infos
        )
        settings_texts = tuple(
            text for project in discovered.projects for text in self._project_warnings.get(project, ())
        )
        pause_notices = () if pauses is None else pause_warnings(pauses, discovered.missing, now)
        own_warnings = (
            *_own_file_warnings(self._read_context.paths, now),
            *pause_problem,
            *pause_notices,
            *_project_and_job_warnings(discovered, waiting, queue, stores, now),
            *self._pack_status.warnings(now),
        )
        restored = (kept for store in stores for kept in self._restored_findings[store.path])
        all_warnings = (
            *warnings,
            *self._with_first_seen(
                (*own_warnings, *_restored_findings_warnings(restored), *_settings_warnings(settings_texts, now)), now
            ),
        )
        return StatusReport(
            health=_health(all_warnings, daemon),
            warnings=all_warnings,
            daemon=daemon,
            queue=queue,
            jobs={kind.value: JobKindInfo(r.last_success, r.last_failure) for kind, r in records.items()},
            waiting=tuple(_waiting_job(job, interrupted=job.id in interrupted_ids) for job in reversed(waiting)),
            stores=stores,
            hooks=_hook_event_counts(self._read_context),
            packs=self._pack_status.infos,
        )

    def _with_first_seen(self, warnings: Iterable[StatusWarning], now: float) -> tuple[StatusWarning, ...]:
        """Each with the moment it was first seen; those that are gone are forgotten."""
        seen = tuple(warnings)
        keys = {(warning.code, warning.text) for warning in seen}
        self._first_seen = {key: self._first_seen.get(key, now) for key in keys}
        return tuple(
            StatusWarning(w.code, w.severity, min(w.since, self._first_seen[w.code, w.text]), w.text, w.fix)
            for w in seen
        )


def gate_report(verdict: Verdict, pauses: Iterable[GateReason] = ()) -> GateReport:
    """A verdict in the words of the JSON contract, with the pauses that hold the project's jobs besides."""
    markers = (
        GateReason(r.marker, r.text, holds=r.blocking, since=r.since, until=r.until, pid=r.pid) for r in verdict.reasons
    )
    return GateReport(state=verdict.state.value, reasons=(*pauses, *markers), until=verdict.until)


def _hook_event_counts(read_context: ReadContext) -> tuple[HookEventCount, ...]:
    counted = () if read_context.hook_events is None else read_context.hook_events.list_counts()
    dropped = read_context.spool.count_dropped()
    return (
        *(HookEventCount(h.event, h.outcome, h.count, h.last_at) for h in counted),
        *(HookEventCount("any", reason, number) for reason, number in dropped.items()),
    )


def _interrupted_jobs(view: QueueView) -> tuple[Job, ...]:
    """The jobs whose process is gone without a word: nobody does them now."""
    running = view.list_jobs({JobState.RUNNING}, _MAX_SHOWN_JOBS)
    return tuple(job for job in running if job.worker is not None and not process_is_alive(job.worker))


def _queue_info(view: QueueView | None, interrupted: Collection[Job], now: float) -> QueueInfo:
    if view is None:
        return QueueInfo()
    counts, oldest = view.count_by_state(), view.oldest_due(now)
    return QueueInfo(
        queued=counts[JobState.QUEUED] + sum(job.kind not in MANUAL_KINDS for job in interrupted),
        deferred=counts[JobState.DEFERRED],
        running=counts[JobState.RUNNING] - len(interrupted),
        dead=counts[JobState.DEAD],
        oldest_due_seconds=None if oldest is None else max(0.0, now - oldest),
    )


def _health(warnings: Iterable[StatusWarning], daemon: DaemonInfo | None) -> Health:
    if daemon is None:
        return Health.DOWN
    serious = any(warning.severity is not Severity.NOTICE for warning in warnings)
    return Health.DEGRADED if serious else Health.HEALTHY


def _waiting_job(job: Job, *, interrupted: bool) -> WaitingJob:
    return WaitingJob(
        job=job.id,
        kind=job.kind.value,
        store=job.store,
        role=job.role,
        state=JobState.QUEUED.value if interrupted else job.state.value,
        reason=_INTERRUPTED_REASON if interrupted else job.result or job.reason,
        due=job.due,
    )


def _own_file_warnings(paths: Paths, now: float) -> Iterator[StatusWarning]:
    if not has_free_space(paths.state):
        text = f"There is hardly any room left on the disk that holds {paths.state}; work stands still without."
        yield StatusWarning("disk-full", Severity.ERROR, now, text, "Free some space; echod goes on by itself then.")
    if copies := list_damaged_copies(paths.database):
        text = "The state database was damaged once and rebuilt; the damaged one is kept. No memory was touched."
        yield StatusWarning(
            "database-copies", Severity.NOTICE, now, text, f"Delete it if nobody needs it: {copies[-1]}"
        )


def _project_and_job_warnings(
    discovered: DiscoveredStores, jobs: Iterable[Job], queue: QueueInfo, stores: Iterable[StoreInfo], now: float
) -> Iterator[StatusWarning]:
    for project in discovered.missing:
        yield StatusWarning(
            "project-missing",
            Severity.WARNING,
            now,
            f"The project {project} is not there (deleted, moved or not mounted). It stays registered.",
            f"If it is gone for good: echod remove {project}",
        )
    for project in discovered.without_store:
        yield StatusWarning(
            "project-without-store",
            Severity.NOTICE,
            now,
            f"The project {project} has no memory directory; echod starts when one appears.",
            "",
        )
    for job in jobs:
        if job.state is JobState.DEAD:
            yield StatusWarning(
                "job-failed",
                Severity.WARNING,
                job.finished_at or now,
                f"{job.kind.value} of {job.role} in {job.store} was given up: {job.result}",
                f"It is tried again when its input changes, or with: echod jobs retry {job.id}",
            )
        elif job.state is JobState.QUEUED and job.attempts and job.result:
            yield StatusWarning(
                "job-failing",
                Severity.WARNING,
                now,
                f"{job.kind.value} of {job.role} in {job.store} failed: {job.result}",
                "It is tried again by itself, and given up if that does not help.",
            )
    if queue.oldest_due_seconds is not None and queue.oldest_due_seconds > QUEUE_STALLED_SECONDS:
        yield StatusWarning(
            "queue-stalled",
            Severity.ERROR,
            now - queue.oldest_due_seconds,
            "A job has been due for too long and nothing has run it.",
            "Let echod start anew: echod service restart, or echod run.",
        )
    yield from _store_warnings(stores, now)


def _restored_findings_warnings(restored_findings: Iterable[RestoredFindings]) -> Iterator[StatusWarning]:
    for restored in restored_findings:
        text = f"{restored.role.store.key}/{restored.role.name}: {restored.reason}"
        yield StatusWarning("findings-restored", Severity.NOTICE, restored.since, text, restored.remedy)


def _settings_warnings(texts: Iterable[str], now: float) -> Iterator[StatusWarning]:
    for text in texts:
        yield StatusWarning("project-settings", Severity.WARNING, now, text, "")


def _store_warnings(stores: Iterable[StoreInfo], now: float) -> Iterator[StatusWarning]:
    projects: dict[Path, int] = {}
    for store in stores:
        project = Path(store.path).parents[1]
        projects[project] = projects.get(project, 0) + 1
        if store.problem:
            yield StatusWarning("store-unreadable", Severity.WARNING, now, f"{store.path}: {store.problem}", "")
        for role in store.roles:
            if role.problem:
                text = f"{store.path}/{role.name}: {role.problem}"
                yield StatusWarning(
                    "memory-unreadable", Severity.WARNING, now, text, "echod leaves it alone until it is mended."
                )
            if role.lines is not None and role.lines > role.limit:
                text = f"{store.path}/{role.name}: its memory file has {role.lines} lines, the limit is {role.limit}."
                command = f"echod prune {shlex.quote(str(project))} --role {role.name} --dry-run"
                fix = f"What may go, and what keeps the rest: {command}"
                yield StatusWarning("memory-too-long", Severity.NOTICE, now, text, fix)
        for reason in store.gate.reasons if store.gate else ():
            if not reason.holds:
                yield StatusWarning(
                    "stale-marker", Severity.NOTICE, reason.since or now, f"{project}: {reason.text}", ""
                )
    for project, number in projects.items():
        if number > 1:
            yield StatusWarning(
                "two-stores",
                Severity.NOTICE,
                now,
                f"{project} has two memory directories; each is maintained where it is.",
                "",
            )
