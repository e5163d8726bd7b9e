"""Bring the queue in line with the disk: queue the needs of a store, and withdraw jobs that are no longer needed.

The needs of findings are in `needs`; those of memory and knowledge files (prune, promote, compress) are found here. A
file is parsed and planned again when it changed, and once a day because age changes plans too. This also records the
entries of the files, and the days on which the project was active, since only those count for the age of entries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path

from echod.clock import local_date
from echod.errors import StateError, left_alone_text
from echod.files import FileVersion, regular_file_version
from echod.inbox.inbox import Inbox
from echod.inspection import InspectionCache
from echod.log import get_logger
from echod.memory import MAX_FILE_BYTES
from echod.memory.model import Layer
from echod.memory.policy_model import PolicySettings
from echod.memory.text import pluralize
from echod.projects.settings import MaintenancePolicy, request_only_reason
from echod.scheduler.needs import NeedSettings, NeedsReport, ReadProblem, find_needs, read_problem, stat_if_present
from echod.sessions.needs import SessionNeedFinder
from echod.sessions.roots import SessionError
from echod.state.entries import EntryStore
from echod.state.jobs import JobKind, Need
from echod.state.queue import JobQueue
from echod.store import layout
from echod.store.engine import Engine
from echod.store.errors import BusyError, StoreError
from echod.store.layout import Role, Store

log = get_logger(__name__)


def reconcile(
    store: Store,
    settings: NeedSettings,
    queue: JobQueue,
    now: float,
    inbox: Inbox | None = None,
    need_finder: MaintenanceNeedFinder | None = None,
    session_need_finder: SessionNeedFinder | None = None,
) -> tuple[ReadProblem, ...]:
    """Compare a store with the queue at `now` (Unix seconds), and return the paths that could not be read."""
    report = queue_findings(store, settings, queue, now, inbox)
    return queue_maintenance(store, settings, queue, now, report, need_finder, session_need_finder)


def queue_findings(
    store: Store, settings: NeedSettings, queue: JobQueue, now: float, inbox: Inbox | None = None
) -> NeedsReport:
    """Queue the work on findings and observations, which is found by names and times alone. The first half."""
    pending = {} if inbox is None else inbox.pending_for(store)
    observations = {
        role: [observation.spooled_event.name for observation in waiting] for role, waiting in pending.items()
    }
    report = find_needs(store, settings, now, observations)
    for need in report.needs:
        queue.put(need, now)
    return report


def queue_maintenance(
    store: Store,
    settings: NeedSettings,
    queue: JobQueue,
    now: float,
    findings_report: NeedsReport,
    need_finder: MaintenanceNeedFinder | None,
    session_need_finder: SessionNeedFinder | None = None,
) -> tuple[ReadProblem, ...]:
    """Queue the maintenance of the files, which may require reading them, and withdraw other jobs. The second half.

    `findings_report` is the result of `queue_findings`. Returns the paths that could not be read in either half.
    """
    report = NeedsReport((), ())
    if need_finder is not None:
        reported = any(need.kind is JobKind.OBSERVE for need in findings_report.needs)
        try:
            report = need_finder.find(
                store, settings.maintenance, settings.mode, now, has_pending_observations=reported
            )
        except (BusyError, StoreError) as error:
            report = NeedsReport((), (ReadProblem(store.key, str(error)),))
    session_needs: tuple[Need, ...] = ()
    if session_need_finder is not None:
        try:
            session_needs = session_need_finder.find(store, settings.mode, now)
        except SessionError as error:
            report = NeedsReport(report.needs, (*report.problems, ReadProblem(store.key, str(error))))
    needs = (*findings_report.needs, *report.needs, *session_needs)
    problems = tuple(dict.fromkeys((*findings_report.problems, *report.problems)))
    for need in (*report.needs, *session_needs):
        queue.put(need, now)
    if not problems:
        queue.withdraw(store.key, now, "no longer needed", keep={(need.kind, need.role) for need in needs})
    return problems


class MaintenanceNeedFinder:
    """Finds the maintenance that files need, from the plans that are stored with their inspections."""

    def __init__(self, entries: EntryStore, engine: Engine, inspections: InspectionCache) -> None:
        self._entries = entries
        self._engine = engine
        self._inspections = inspections

    def find(
        self, store: Store, maintenance: MaintenancePolicy, mode: str, now: float, *, has_pending_observations: bool
    ) -> NeedsReport:
        """Return the needs of a store's files.

        `has_pending_observations` is true if agents reported tasks for this store that are not in its memory yet. For
        `mode` see `NeedSettings`.

        Raises:
            BusyError, StoreError: the journal cannot be read.
        """
        today = local_date(now)
        try:
            roles = layout.find_roles(store)
        except OSError as error:
            return NeedsReport((), (read_problem(store.root, error),))
        own_writes = self._engine.own_mtimes(store)
        activity_days = {today} if has_pending_observations else set()
        needs: list[Need] = []
        problems: list[ReadProblem] = []
        for role in roles:
            try:
                activity_days |= _foreign_activity_days(role, own_writes, today)
                needs += self._role_needs(role, maintenance, mode, now, today)
            except OSError as error:
                path = Path(error.filename or role.path)
                problems.append(read_problem(path, error, "listed" if path == role.path else "read"))
            except (StateError, BusyError, StoreError):
                raise
            except Exception as error:
                log.exception("role_left_alone", role=str(role.path))
                problems.append(ReadProblem(str(role.path), left_alone_text(str(role.path), error)))
        self._entries.record_activity(str(store.project), activity_days)
        return NeedsReport(tuple(needs), tuple(problems))

    def _role_needs(
        self, role: Role, maintenance: MaintenancePolicy, mode: str, now: float, today: date
    ) -> Iterator[Need]:
        policy = maintenance.policy
        memory = regular_file_version(role.memory, MAX_FILE_BYTES)
        knowledge = regular_file_version(role.knowledge, MAX_FILE_BYTES)
        reasons = {
            JobKind.PRUNE: (self._need_reason(role, role.memory, memory, policy, today), memory),
            JobKind.COMPRESS: (self._need_reason(role, role.knowledge, knowledge, policy, today), knowledge),
        }
        for kind, (reason, version) in reasons.items():
            if reason is None or maintenance.disabled_reason(kind) or request_only_reason(kind, role, maintenance):
                continue
            yield _build_need(kind, role, reason, now, (mode, version, today, policy))
        if policy.propose_command and memory is not None and self._is_half_full(role, policy):
            # One question a day at most, and none about a file that has not changed since the last one.
            changed_on = local_date(role.memory.stat().st_mtime)
            reason = "a memory file that changed"
            yield _build_need(JobKind.PROPOSE, role, reason, now, (mode, changed_on, policy.propose_command))
        referenced = self._entries.list_often_referenced(
            role.store.key, role.name, Layer.OBSERVATIONS, policy.promote_references, today
        )
        recurring = self._recurring(role, memory, policy, today)
        if recurring and memory is not None:
            referenced = tuple(sorted({*referenced, *recurring}))
            reason = f"{pluralize(len(referenced), 'observation')} referenced or reported often"
            yield _build_need(JobKind.PROMOTE, role, reason, now, (mode, memory, referenced))
        elif referenced and memory is not None:
            count = f"{len(referenced)} observation{'' if len(referenced) == 1 else 's'}"
            reason = f"{count} referenced {policy.promote_references} times or more"
            yield _build_need(JobKind.PROMOTE, role, reason, now, (mode, memory, referenced))

    def _is_half_full(self, role: Role, policy: PolicySettings) -> bool:
        lines = self._inspections.inspect(role.memory).lines
        return lines is not None and 2 * lines > policy.memory_line_limit

    def _recurring(
        self, role: Role, version: FileVersion | None, policy: PolicySettings, today: date
    ) -> tuple[str, ...]:
        """Return the ids of observations that recur often enough. Uses the plan that was just made."""
        if version is None:
            return ()
        plan = self._inspections.plan(role, role.memory, version, self._entries, policy, today, record_entries=True)
        return () if plan is None else plan.recurring

    def _need_reason(
        self, role: Role, file: Path, version: FileVersion | None, policy: PolicySettings, today: date
    ) -> str | None:
        """Return why a file is to be pruned or compressed; None if it is not. Records the entries of a memory file.

        Raises:
            OSError: the file cannot be read.
        """
        if version is None:
            return None
        plan = self._inspections.plan(role, file, version, self._entries, policy, today, record_entries=True)
        return None if plan is None else plan.reason


def _foreign_activity_days(role: Role, own_writes: Mapping[Path, int], today: date) -> set[date]:
    """Return the days on which other programs changed files of a role. Writes of echod itself do not count."""
    days = set()
    for path in (role.memory, *layout.list_findings_files(role)):
        status = stat_if_present(path)
        if status is not None and own_writes.get(path) != status.st_mtime_ns:
            days.add(min(local_date(status.st_mtime), today))
    return days


def _build_need(kind: JobKind, role: Role, reason: str, now: float, fingerprint_parts: tuple[object, ...]) -> Need:
    fingerprint = hashlib.sha256(repr(fingerprint_parts).encode()).hexdigest()[:16]
    return Need(kind=kind, store=role.store.key, role=role.name, fingerprint=fingerprint, reason=reason, due=now)
