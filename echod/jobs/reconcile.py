"""Bring the queue in line with the disk: what a store calls for is queued, what nothing calls for is withdrawn."""

from __future__ import annotations

from echod.jobs.inbox import Inbox
from echod.jobs.needs import NeedRules, Trouble, look
from echod.jobs.upkeep import Upkeep
from echod.state.job import Need
from echod.state.queue import JobQueue
from echod.store.faults import Busy, StoreFault
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
    letters = {} if inbox is None else inbox.letters(store)
    observations = {role: [letter.spooled.name for letter in waiting] for role, waiting in letters.items()}
    found = look(store, rules, now, observations)
    kept, troubles = _called_for(upkeep, store, rules, now, reported=bool(observations))
    needs = (*found.needs, *kept)
    for need in needs:
        queue.put(need, now)
    troubles = (*found.troubles, *troubles)
    if not troubles:
        queue.withdraw(store.key, now, _GONE, keep={(need.kind, need.role) for need in needs})
    return troubles


def _called_for(
    upkeep: Upkeep | None, store: Store, rules: NeedRules, now: float, *, reported: bool
) -> tuple[tuple[Need, ...], tuple[Trouble, ...]]:
    """What the memory files themselves call for, beside what waits to be taken up."""
    if upkeep is None:
        return (), ()
    try:
        return upkeep.needs(store, rules.care, rules.mode, now, reported=reported), ()
    except OSError as error:
        text = f"{error.filename or store.root} cannot be read: {(error.strerror or type(error).__name__).lower()}"
    except (Busy, StoreFault) as error:
        text = str(error)
    return (), (Trouble(store.key, text),)
