"""Bring the queue in line with the disk: queue the needs of a store, and withdraw jobs that are no longer needed."""

from __future__ import annotations

from echod.inbox.inbox import Inbox
from echod.scheduler.maintenance import MaintenanceNeedFinder
from echod.scheduler.needs import NeedSettings, NeedsReport, ReadProblem, find_needs
from echod.state.job import JobKind
from echod.state.queue import JobQueue
from echod.store.errors import BusyError, StoreError
from echod.store.layout import Store

_NO_LONGER_NEEDED = "no longer needed"


def reconcile(
    store: Store,
    settings: NeedSettings,
    queue: JobQueue,
    now: float,
    inbox: Inbox | None = None,
    need_finder: MaintenanceNeedFinder | None = None,
) -> tuple[ReadProblem, ...]:
    """Compare a store with the queue at `now` (Unix seconds), and return the paths that could not be read."""
    report = queue_findings(store, settings, queue, now, inbox)
    return queue_maintenance(store, settings, queue, now, report, need_finder)


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
) -> tuple[ReadProblem, ...]:
    """Queue the maintenance of the files, which may require reading them, and withdraw other jobs. The second half.

    Args:
        store: the store.
        settings: the project's settings.
        queue: the queue.
        now: Unix seconds.
        findings_report: the result of `queue_findings`.
        need_finder: finds the maintenance needs; None for none.

    Returns:
        The paths that could not be read in either half.
    """
    reported = any(need.kind is JobKind.OBSERVE for need in findings_report.needs)
    maintenance_report = _find_maintenance_needs(need_finder, store, settings, now, has_pending_observations=reported)
    needs = (*findings_report.needs, *maintenance_report.needs)
    problems = tuple(dict.fromkeys((*findings_report.problems, *maintenance_report.problems)))
    for need in maintenance_report.needs:
        queue.put(need, now)
    if not problems:
        queue.withdraw(store.key, now, _NO_LONGER_NEEDED, keep={(need.kind, need.role) for need in needs})
    return problems


def _find_maintenance_needs(
    need_finder: MaintenanceNeedFinder | None,
    store: Store,
    settings: NeedSettings,
    now: float,
    *,
    has_pending_observations: bool,
) -> NeedsReport:
    if need_finder is None:
        return NeedsReport((), ())
    try:
        return need_finder.find(
            store, settings.maintenance, settings.mode, now, has_pending_observations=has_pending_observations
        )
    except (BusyError, StoreError) as error:
        return NeedsReport((), (ReadProblem(store.key, str(error)),))
