"""Bring the queue in line with the disk: what a store calls for is queued, what nothing calls for is withdrawn."""

from __future__ import annotations

from echod.inbox.inbox import Inbox
from echod.scheduler.maintenance import Upkeep
from echod.scheduler.needs import Look, NeedRules, Trouble, look
from echod.state.job import JobKind
from echod.state.queue import JobQueue
from echod.store.errors import Busy, StoreFault
from echod.store.layout import Store

_GONE = "nothing calls for it any more"


def reconcile(
    store: Store,
    rules: NeedRules,
    queue: JobQueue,
    now: float,
    inbox: Inbox | None = None,
    upkeep: Upkeep | None = None,
) -> tuple[Trouble, ...]:
    """Compare one store with the queue at `now` (Unix seconds). Returns what could not be looked at."""
    return complete(store, rules, queue, now, take_in(store, rules, queue, now, inbox), upkeep)


def take_in(store: Store, rules: NeedRules, queue: JobQueue, now: float, inbox: Inbox | None = None) -> Look:
    """The first half: queue what agents left, which is seen by names and times alone."""
    letters = {} if inbox is None else inbox.letters(store)
    observations = {role: [letter.spooled.name for letter in waiting] for role, waiting in letters.items()}
    found = look(store, rules, now, observations)
    for need in found.needs:
        queue.put(need, now)
    return found


def complete(
    store: Store, rules: NeedRules, queue: JobQueue, now: float, found: Look, upkeep: Upkeep | None
) -> tuple[Trouble, ...]:
    """The second half: queue what the files themselves call for, which may mean to read them; withdraw the rest.

    `found` is what the first half saw. Returns what could not be looked at, in either.
    """
    reported = any(need.kind is JobKind.OBSERVE for need in found.needs)
    kept = _kept_up(upkeep, store, rules, now, reported=reported)
    needs = (*found.needs, *kept.needs)
    troubles = tuple(dict.fromkeys((*found.troubles, *kept.troubles)))
    for need in kept.needs:
        queue.put(need, now)
    if not troubles:
        queue.withdraw(store.key, now, _GONE, keep={(need.kind, need.role) for need in needs})
    return troubles


def _kept_up(upkeep: Upkeep | None, store: Store, rules: NeedRules, now: float, *, reported: bool) -> Look:
    """What the files themselves call for, beside what waits to be taken up into them."""
    if upkeep is None:
        return Look((), ())
    try:
        return upkeep.look(store, rules.care, rules.mode, now, reported=reported)
    except (Busy, StoreFault) as error:
        return Look((), (Trouble(store.key, str(error)),))
