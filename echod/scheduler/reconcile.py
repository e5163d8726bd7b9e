"""Bring the queue in line with the disk: what a store calls for is queued, what nothing calls for is withdrawn."""

from __future__ import annotations

from echod.inbox.inbox import Inbox
from echod.scheduler.maintenance import MaintenanceNeedFinder
from echod.scheduler.needs import NeedSettings, NeedsReport, ReadProblem, find_needs
from echod.state.job import JobKind
from echod.state.queue import JobQueue
from echod.store.errors import BusyError, StoreError
from echod.store.layout import Store

_NO_LONGER_NEEDED = "nothing calls for it any more"


def reconcile(
    store: Store,
    settings: NeedSettings,
    queue: JobQueue,
    now: float,
    inbox: Inbox | None = None,
    need_finder: MaintenanceNeedFinder | None = None,
) -> tuple[ReadProblem, ...]:
    """Compare one store with the queue at `now` (Unix seconds). Returns what could not be looked at."""
    return queue_maintenance(
        store, settings, queue, now, queue_findings(store, settings, queue, now, inbox), need_finder
    )


def queue_findings(
    store: Store, settings: NeedSettings, queue: JobQueue, now: float, inbox: Inbox | None = None
) -> NeedsReport:
    """The first half: queue what agents left, which is seen by names and times alone."""
    pending = {} if inbox is None else inbox.pending_for(store)
    observations = {
        role: [observation.spooled_event.name for observation in waiting] for role, waiting in pending.items()
    }
    found = find_needs(store, settings, now, observations)
    for need in found.needs:
        queue.put(need, now)
    return found


def queue_maintenance(
    store: Store,
    settings: NeedSettings,
    queue: JobQueue,
    now: float,
    found: NeedsReport,
    need_finder: MaintenanceNeedFinder | None,
) -> tuple[ReadProblem, ...]:
    """The second half: queue what the files themselves call for, which may mean to read them; withdraw the rest.

    `found` is what the first half saw. Returns what could not be looked at, in either.
    """
    reported = any(need.kind is JobKind.OBSERVE for need in found.needs)
    maintenance_report = _find_maintenance_needs(need_finder, store, settings, now, has_pending_observations=reported)
    needs = (*found.needs, *maintenance_report.needs)
    problems = tuple(dict.fromkeys((*found.problems, *maintenance_report.problems)))
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
    """What the files themselves call for, beside what waits to be taken up into them."""
    if need_finder is None:
        return NeedsReport((), ())
    try:
        return need_finder.find(
            store, settings.maintenance, settings.mode, now, has_pending_observations=has_pending_observations
        )
    except (BusyError, StoreError) as error:
        return NeedsReport((), (ReadProblem(store.key, str(error)),))
