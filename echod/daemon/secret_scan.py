"""The daemon's scan for secrets in memory files, a few changed files at a time. Only reports."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from echod.contract.status import Severity, StatusWarning
from echod.daemon.timers import Debounce
from echod.inspection import InspectionCache
from echod.inspection.secrets import SecretScanner
from echod.isolation import isolated
from echod.store.layout import Store

STEP_BUDGET_BYTES = 128 * 1024
"""Bytes of new and changed files that one step reads, which keeps a step well below a second."""

QUIET_SECONDS, MAX_DELAY_SECONDS = 5.0, 60.0
"""A store that was scanned before is scanned again after it was quiet this long, and at the latest after a minute."""

STEP_SECONDS = 0.2
"""Pause between two steps."""


class SecretScanTask:
    """The stores that are still to be scanned, and since when secrets are known. Used by one thread."""

    def __init__(self, inspections: InspectionCache) -> None:
        self._scanner = SecretScanner(inspections)
        self._stores: dict[str, Store] = {}
        self._debounce: Debounce[str] = Debounce(QUIET_SECONDS, MAX_DELAY_SECONDS)
        self._pending: dict[str, Store] = {}
        self._found_since: dict[str, float] = {}

    def seconds_until_next_step(self, monotonic: float) -> float | None:
        """Return for how long another step would do nothing; None if no store is marked."""
        if self._pending:
            return STEP_SECONDS
        due = self._debounce.next_due()
        return None if due is None else due - monotonic

    def mark_changed(self, stores: Iterable[Store], monotonic: float) -> None:
        """Schedule a scan of stores that may have changed."""
        for store in stores:
            if store.key in self._stores:
                self._debounce.mark(store.key, monotonic)
            else:
                self._pending[store.key] = store
            self._stores[store.key] = store

    def run_step(self, now: float, monotonic: float) -> bool:
        """Scan a part of what is scheduled. Return whether the warnings have changed.

        Args:
            now: Unix seconds, reported as the time since when a secret is known.
            monotonic: seconds of the clock that `mark_changed` uses.
        """
        self._pending.update((key, self._stores[key]) for key in self._debounce.ready(monotonic))
        if not self._pending:
            return False
        key, store = next(iter(self._pending.items()))
        before = self._scanner.count(store)
        del self._pending[key]
        with isolated(key):
            if not self._scanner.scan(store, STEP_BUDGET_BYTES):
                self._pending[key] = store  # behind the others
        after = self._scanner.count(store)
        if after:
            self._found_since.setdefault(key, now)
        else:
            self._found_since.pop(key, None)
        return before != after

    def warnings(self, stores: Collection[Store]) -> tuple[StatusWarning, ...]:
        """Return the warnings about these stores."""
        return tuple(
            self._warning(store, self._found_since[store.key]) for store in stores if store.key in self._found_since
        )

    def _warning(self, store: Store, since: float) -> StatusWarning:
        count = self._scanner.count(store)
        places = "1 place" if count == 1 else f"{count} places"
        text = f"Text that looks like a secret is in {places} of {store.root}. Agents read it, and others may too."
        fix = f"Show the places and remove the secrets with: echod scrub {store.project}"
        return StatusWarning("secrets-on-disk", Severity.WARNING, since, text, fix)
