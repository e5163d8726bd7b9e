"""Collect the status report that `echod status` prints. Read-only.

The daemon inspects the stores that changed. A command without a daemon inspects all of them. The warnings are computed
from what was read. Only `read_pauses` and `own_file_warnings` read files themselves.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from pathlib import Path

from echod.app.context import ReadContext, process_is_alive
from echod.contract.status import (
    MAX_COUNTED_FINDINGS,
    DaemonInfo,
    GateReason,
    GateReport,
    Health,
    HookEventCount,
    JobKindInfo,
    QueueInfo,
    RoleInfo,
    SessionsInfo,
    Severity,
    StatusReport,
    StatusWarning,
    StoreInfo,
    WaitingJob,
)
from echod.errors import StateError, isolated
from echod.files import write_runtime_file
from echod.inbox.spool import count_offers
from echod.inspection import InspectionCache, RestoredFindings, find_restored_findings
from echod.paths import Paths, insecure_directory_warnings
from echod.projects.discovery import DiscoveredStores
from echod.projects.registry import PausedProjects, ProjectRegistry
from echod.runtime.system import MIN_FREE_BYTES, has_free_space
from echod.state.jobs import MANUAL_KINDS, Job, JobState, QueueView
from echod.state.repair import LOST_WITH_DATABASE, list_damaged_copies
from echod.status.sections import PackStatus, SessionStatus
from echod.store import layout
from echod.store.layout import Role, RoleListing, SkippedItem, Store, find_skipped
from echod.workflows.model import Verdict

PAUSE_MARKER = "paused"
"""Marks a pause among the reasons of a gate. It is not a workflow's marker and never holds the gate itself."""

QUEUE_STALLED_SECONDS = 900.0

_MAX_SHOWN_JOBS = 200
_INTERRUPTED_REASON = "it was interrupted: its process has ended; it runs when echod runs again"
_SHOWN_STATES = frozenset(JobState) - {JobState.DONE, JobState.REFUSED}


class StatusCollector:
    """Composes status reports from the latest inspection of each store. One per process, used by one thread."""

    def __init__(self, read_context: ReadContext) -> None:
        self._read_context = read_context
        self._store_infos: dict[str, StoreInfo] = {}
        self._project_warnings: dict[Path, tuple[str, ...]] = {}
        self._restored_findings: dict[str, tuple[RestoredFindings, ...]] = {}
        self._skipped: dict[str, tuple[SkippedItem, ...]] = {}
        self._first_seen = _read_first_seen(read_context.paths.warnings)
        self._saved_first_seen = dict(self._first_seen)
        self._pack_status = PackStatus(read_context)
        self._session_status = SessionStatus(read_context)

    @property
    def session_infos(self) -> tuple[SessionsInfo, ...] | None:
        """The conversations of each project, as last seen; None if that is not known."""
        return self._session_status.known_infos

    def invalidate_packs(self, projects: Iterable[Path]) -> None:
        """Note that registries of doc packs, or these projects' settings about them, may have changed."""
        with isolated("The registries of doc packs"):
            self._pack_status.invalidate(projects)

    def inspect_packs(self, now: float) -> bool:
        """Inspect the installed doc packs if something changed. Return whether the report is different now."""
        changes: list[bool] = []
        with isolated("The doc packs"):
            changes.append(self._pack_status.refresh(now))
        return any(changes)

    def inspect(self, stores: Iterable[Store], now: float) -> None:
        """Inspect these stores again. A store whose inspection fails is reported with the reason."""
        for store in stores:
            with isolated(store.key, partial(self._note_problem, store)):
                self._inspect_store(store, now)

    def _note_problem(self, store: Store, problem: str) -> None:
        self._restored_findings[store.key] = ()
        self._skipped[store.key] = ()
        self._store_infos[store.key] = StoreInfo(path=store.key, problem=problem)

    def _inspect_store(self, store: Store, now: float) -> None:
        context = self._read_context
        verdict = context.project_gate.check(store.project, layout.find_stores_in_resolved_root(store.project), now)
        project_settings = context.project_settings.read(store.project)
        maintenance = context.maintenance_policy_from(project_settings.settings)
        self._project_warnings[store.project] = project_settings.warnings
        notices, roles = context.collect_notices(store, now), layout.list_roles(store)
        restored = self._restored_findings[store.key] = find_restored_findings(context.reader, notices)
        items = context.review_collector.collect(store, roles.roles, notices, maintenance, restored, now)
        limit = maintenance.policy.memory_line_limit
        store_info = inspect_store(context.inspections, store, roles, limit, gate_report(verdict))
        self._store_infos[store.key] = store_info._replace(review=len(items))
        self._skipped[store.key] = find_skipped(store, roles.roles)

    def stores_with_expired_gate(self, now: float) -> tuple[str, ...]:
        """Return the stores whose verdict may have changed since the last inspection only because time passed."""
        gates = {key: info.gate for key, info in self._store_infos.items()}
        return tuple(key for key, gate in gates.items() if gate and gate.until is not None and gate.until <= now)

    def report(
        self,
        discovered: DiscoveredStores,
        now: float,
        *,
        daemon: DaemonInfo | None = None,
        warnings: Iterable[StatusWarning] = (),
    ) -> StatusReport:
        """Return the whole status. `warnings` are those that only the caller knows of."""
        view = self._read_context.queue_view
        # A daemon re-queues interrupted jobs when it starts.
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
            self._store_infos[store.key]._replace(paused=None if pauses is None else pauses.covers(store.project))
            for store in discovered.stores
            if store.key in self._store_infos
        )
        self._session_status.refresh(discovered.projects, now)
        current_warnings = (
            *warnings,
            *own_file_warnings(self._read_context.paths, now),
            *pause_problem,
            *(() if pauses is None else pause_warnings(pauses, discovered.missing, now)),
            *project_warnings(discovered, now),
            *skipped_warnings(
                (*discovered.linked, *(one for store in stores for one in self._skipped[store.path])), now
            ),
            *job_warnings(waiting, queue, now),
            *store_warnings(stores, now),
            *self._pack_status.warnings(now),
            *self._session_status.warnings(now),
            *restored_findings_warnings(one for store in stores for one in self._restored_findings[store.path]),
            *settings_warnings(
                (text for project in discovered.projects for text in self._project_warnings.get(project, ())), now
            ),
        )
        all_warnings = self._with_first_seen(current_warnings, now)
        return StatusReport(
            health=_health(all_warnings, daemon),
            warnings=all_warnings,
            daemon=daemon,
            queue=queue,
            jobs={kind.value: JobKindInfo(r.last_success, r.last_failure) for kind, r in records.items()},
            waiting=tuple(self._waiting_job(job, interrupted=job.id in interrupted_ids) for job in reversed(waiting)),
            stores=stores,
            hooks=_hook_event_counts(self._read_context),
            packs=self._pack_status.infos,
            sessions=self._session_status.infos,
            evidence=_evidence_counts(self._read_context, [store.path for store in stores]),
            recall=count_offers(self._read_context.paths.state),
        )

    def _waiting_job(self, job: Job, *, interrupted: bool) -> WaitingJob:
        """Return a job that waits. One that waits for the gate asks again when the gate may open, as that is now."""
        store = self._store_infos.get(job.store)
        gate = None if store is None or job.state is not JobState.DEFERRED else store.gate
        due = job.due
        if (
            gate is not None
            and gate.until is not None
            and any(r.holds and r.marker in job.result for r in gate.reasons)
        ):
            due = gate.until
        return WaitingJob(
            job=job.id,
            kind=job.kind.value,
            store=job.store,
            role=job.role,
            state=JobState.QUEUED.value if interrupted else job.state.value,
            reason=_INTERRUPTED_REASON if interrupted else job.result or job.reason,
            due=due,
        )

    def save_first_seen(self) -> None:
        """Write since when each warning exists, so that a restart of the daemon does not change it.

        Raises:
            OSError: the runtime directory cannot be written.
        """
        if self._first_seen != self._saved_first_seen:
            rows = [[code, text, since] for (code, text), since in self._first_seen.items()]
            write_runtime_file(self._read_context.paths.warnings, json.dumps(rows))
            self._saved_first_seen = dict(self._first_seen)

    def _with_first_seen(self, warnings: Iterable[StatusWarning], now: float) -> tuple[StatusWarning, ...]:
        """Return the warnings, each with the time when it was first seen. Those that are resolved are forgotten."""
        current = tuple(warnings)
        keys = {(warning.code, warning.text) for warning in current}
        self._first_seen = {key: self._first_seen.get(key, now) for key in keys}
        return tuple(
            StatusWarning(w.code, w.severity, min(w.since, self._first_seen[w.code, w.text]), w.text, w.fix)
            for w in current
        )


def _read_first_seen(file: Path) -> dict[tuple[str, str], float]:
    """Return since when the daemon's last warnings existed; empty if it left none."""
    try:
        rows = json.loads(file.read_bytes())
        return {(str(code), str(text)): float(since) for code, text, since in rows}
    except (OSError, ValueError, TypeError):
        return {}


def gate_report(verdict: Verdict, pauses: Iterable[GateReason] = ()) -> GateReport:
    """Return a verdict in the form of the JSON contract, together with the pauses that hold the project's jobs."""
    markers = (
        GateReason(r.marker, r.text, holds=r.blocking, since=r.since, until=r.until, pid=r.pid) for r in verdict.reasons
    )
    return GateReport(state=verdict.state.value, reasons=(*pauses, *markers), until=verdict.until)


def inspect_store(
    inspections: InspectionCache, store: Store, roles: RoleListing, limit: int, gate: GateReport | None
) -> StoreInfo:
    """Return a store with its roles. `limit` is its line limit for memory files; `gate` is passed through."""
    if roles.error is not None:
        problem = f"It cannot be listed: {roles.error.strerror}. Check the permissions of {store.root}."
        return StoreInfo(path=store.key, gate=gate, problem=problem)
    inspected = [_inspect_role_isolated(inspections, role, limit) for role in roles.roles]
    infos = tuple(info for info, _ in inspected)
    return StoreInfo(path=store.key, roles=infos, gate=gate, quarantined=sum(number for _, number in inspected))


def _inspect_role_isolated(inspections: InspectionCache, role: Role, limit: int) -> tuple[RoleInfo, int]:
    problems: list[str] = []
    inspected: list[tuple[RoleInfo, int]] = []
    with isolated(str(role.path), problems.append):
        inspected.append(_inspect_role(inspections, role, limit))
    failed = (RoleInfo(role.name, lines=None, limit=limit, entries={}, findings=0, problem=text) for text in problems)
    return next(iter(inspected), None) or (next(failed), 0)


def _inspect_role(inspections: InspectionCache, role: Role, limit: int) -> tuple[RoleInfo, int]:
    """Return a role and the number of files in its quarantine."""
    memory = inspections.inspect(role.memory)
    findings, quarantined, problem = 0, 0, memory.problem
    try:
        summary = layout.summarize_role(role, MAX_COUNTED_FINDINGS)
    except OSError as error:
        problem = f"{role.path} cannot be listed: {error.strerror}."
    else:
        findings = summary.findings_count
        if summary.has_knowledge:
            problem = problem or inspections.inspect(role.knowledge).problem
        if summary.has_quarantine:
            quarantined = _count_quarantined(role)
    entries = dict(memory.entries)
    info = RoleInfo(role.name, lines=memory.lines, limit=limit, entries=entries, findings=findings, problem=problem)
    return info, quarantined


def _count_quarantined(role: Role) -> int:
    try:
        return sum(1 for path in (role.path / layout.QUARANTINE).iterdir() if path.name != layout.QUARANTINE_REASONS)
    except OSError:
        return 0


def _hook_event_counts(read_context: ReadContext) -> tuple[HookEventCount, ...]:
    counts = () if read_context.hook_events is None else read_context.hook_events.list_counts()
    dropped = read_context.spool.count_dropped()
    return (
        *(HookEventCount(h.event, h.outcome, h.count, h.last_at) for h in counts),
        *(HookEventCount("any", reason, number) for reason, number in dropped.items()),
    )


def _evidence_counts(read_context: ReadContext, stores: Collection[str]) -> dict[str, int]:
    fingerprints = read_context.fingerprints
    return {} if fingerprints is None else dict(fingerprints.count_states(stores))


def _interrupted_jobs(view: QueueView) -> tuple[Job, ...]:
    """Return the running jobs whose process has ended without recording a result."""
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


# Warnings


def read_pauses(projects: ProjectRegistry, now: float) -> tuple[PausedProjects | None, tuple[StatusWarning, ...]]:
    """Return the paused projects, or None and a warning if they cannot be read. Unknown is not "none"."""
    try:
        return projects.pauses(), ()
    except StateError as error:
        fix = "No job runs until it is readable."
        return None, (StatusWarning("pauses-unreadable", Severity.WARNING, now, str(error), fix),)


def pause_warnings(pauses: PausedProjects, missing: Collection[Path], now: float) -> Iterator[StatusWarning]:
    """Yield a notice for the pause of all projects and for that of each project which is not missing."""
    since = now if pauses.since is None else min(pauses.since, now)
    if pauses.all_projects:
        text = "Everything is paused: no memory is written."
        yield StatusWarning("paused", Severity.NOTICE, since, text, "Resume with: echod resume --all")
    for root in pauses.roots:
        if root not in missing:
            text = f"{root} is paused: its memory is not written."
            yield StatusWarning("paused", Severity.NOTICE, since, text, f"Resume with: {_resume_command(root)}")


def pause_reasons(pauses: PausedProjects, project: Path) -> Iterator[GateReason]:
    """Yield the pauses that hold this project, each with the command that ends it."""
    if pauses.all_projects:
        text = "Everything is paused. Resume with: echod resume --all"
        yield GateReason(PAUSE_MARKER, text, holds=False, since=pauses.since)
    if pauses.lists(project):
        text = f"This project is paused. Resume with: {_resume_command(project)}"
        yield GateReason(PAUSE_MARKER, text, holds=False, since=pauses.since)


def _resume_command(root: Path) -> str:
    return f"echod resume {shlex.quote(str(root))}"


def own_file_warnings(paths: Paths, now: float) -> Iterator[StatusWarning]:
    """Yield warnings about echod's own disk and database."""
    if not has_free_space(paths.state):
        text = f"Less than {MIN_FREE_BYTES >> 20} MiB free on the disk holding {paths.state}. Jobs are paused."
        yield StatusWarning("disk-full", Severity.ERROR, now, text, "Free some space. echod resumes by itself.")
    for text in insecure_directory_warnings(paths, os.getuid()):
        yield StatusWarning("directory-insecure", Severity.WARNING, now, text, "")
    if copies := list_damaged_copies(paths.database):
        text = "The state database was damaged and rebuilt. The damaged one was kept. No memory was touched. "
        text += LOST_WITH_DATABASE
        fix = f"Delete it if you do not need it: {copies[-1]}"
        yield StatusWarning("database-copies", Severity.NOTICE, now, text, fix)


def project_warnings(discovered: DiscoveredStores, now: float) -> Iterator[StatusWarning]:
    """Yield warnings about projects whose directory or store is missing."""
    for project in discovered.missing:
        text = f"The project {project} is missing (deleted, moved or not mounted). It stays registered."
        old = shlex.quote(str(project))
        fix = f"If it was moved: echod move {old} NEW. If it was deleted for good: echod remove {old}"
        yield StatusWarning("project-missing", Severity.WARNING, now, text, fix)
    for project in discovered.without_store:
        text = f"The project {project} has no memory directory. echod starts when one appears."
        yield StatusWarning("project-without-store", Severity.NOTICE, now, text, "")
    for excluded in discovered.excluded:
        text = f"{excluded.root} is listed as a project and not maintained: {excluded.reason}."
        fix = f"Remove it from the list: echod remove {shlex.quote(str(excluded.root))}"
        yield StatusWarning("project-excluded", Severity.NOTICE, now, text, fix)


def skipped_warnings(items: Iterable[SkippedItem], now: float) -> Iterator[StatusWarning]:
    """Yield a notice for each file and directory that is passed over because of its name, or because it is a link."""
    for item in items:
        yield StatusWarning("skipped", Severity.NOTICE, now, item.reason, item.fix)


def job_warnings(jobs: Iterable[Job], queue: QueueInfo, now: float) -> Iterator[StatusWarning]:
    """Yield warnings about jobs that fail or failed, and about a queue that nothing processes."""
    for job in jobs:
        name = f"{job.kind.value} of {job.role} in {job.store}"
        if job.state is JobState.DEAD:
            since, text = job.finished_at or now, f"{name} was given up: {job.result}"
            fix = f"It runs again when its input changes, or with: echod jobs retry {job.id}"
            yield StatusWarning("job-failed", Severity.WARNING, since, text, fix)
        elif job.state is JobState.QUEUED and job.attempts and job.result:
            fix = "It is retried automatically, and given up if that does not help."
            yield StatusWarning("job-failing", Severity.WARNING, now, f"{name} failed: {job.result}", fix)
    if queue.oldest_due_seconds is not None and queue.oldest_due_seconds > QUEUE_STALLED_SECONDS:
        text = "A job has been due for too long and nothing has run it."
        fix = "Restart the service: echod service restart, or echod run."
        yield StatusWarning("queue-stalled", Severity.ERROR, now - queue.oldest_due_seconds, text, fix)


def store_warnings(stores: Iterable[StoreInfo], now: float) -> Iterator[StatusWarning]:
    """Yield warnings about stores, their roles and their gates."""
    projects: dict[Path, int] = {}
    for store in stores:
        project = Path(store.path).parents[1]
        projects[project] = projects.get(project, 0) + 1
        if store.problem:
            yield StatusWarning("store-unreadable", Severity.WARNING, now, f"{store.path}: {store.problem}", "")
        for role in store.roles:
            yield from _role_warnings(store, project, role, now)
        for reason in store.gate.reasons if store.gate else ():
            if not reason.holds:
                text = f"{project}: {reason.text}"
                yield StatusWarning("stale-marker", Severity.NOTICE, reason.since or now, text, "")
    for project, number in projects.items():
        if number > 1:
            text = f"{project} has two memory directories. Each is maintained on its own."
            yield StatusWarning("two-stores", Severity.NOTICE, now, text, "")


def _role_warnings(store: StoreInfo, project: Path, role: RoleInfo, now: float) -> Iterator[StatusWarning]:
    if role.problem:
        text = f"{store.path}/{role.name}: {role.problem}"
        fix = "echod leaves the file alone until it is repaired."
        yield StatusWarning("memory-unreadable", Severity.WARNING, now, text, fix)
    if role.lines is not None and role.lines > role.limit:
        text = f"{store.path}/{role.name}: its memory file has {role.lines} lines, the limit is {role.limit}."
        command = f"echod prune {shlex.quote(str(project))} --role {role.name} --dry-run"
        fix = f"Preview: {command}"
        yield StatusWarning("memory-too-long", Severity.NOTICE, now, text, fix)


def restored_findings_warnings(restored_findings: Iterable[RestoredFindings]) -> Iterator[StatusWarning]:
    """Yield a notice for each findings file that an undo restored."""
    for restored in restored_findings:
        text = f"{restored.role.store.key}/{restored.role.name}: {restored.reason}"
        yield StatusWarning("findings-restored", Severity.NOTICE, restored.since, text, restored.remedy)


def settings_warnings(texts: Iterable[str], now: float) -> Iterator[StatusWarning]:
    """Yield a warning for each problem in the projects' own settings."""
    for text in texts:
        yield StatusWarning("project-settings", Severity.WARNING, now, text, "")
