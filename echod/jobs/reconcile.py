"""Bring the queue in line with the disk: what a store calls for is queued, what nothing calls for is withdrawn."""

from __future__ import annotations

from echod.jobs.inbox import Inbox
from echod.jobs.needs import NeedRules, Trouble, look
from echod.state.queue import JobQueue
from echod.store.layout import Store

_GONE = "nothing calls for it any more"


def reconcile(
    store: Store, rules: NeedRules, queue: JobQueue, now: float, inbox: Inbox | None = None
) -> tuple[Trouble, ...]:
    """Compare one store with the queue at `now` (Unix seconds). Returns what could not be looked at."""
    letters = {} if inbox is None else inbox.letters(store)
    observations = {role: [letter.spooled.name for letter in waiting] for role, waiting in letters.items()}
    found = look(store, rules, now, observations)
    for need in found.needs:
        queue.put(need, now)
    if not found.troubles:
        queue.withdraw(store.key, now, _GONE, keep={(need.kind, need.role) for need in found.needs})
    return found.troubles
