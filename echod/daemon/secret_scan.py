"""The daemon's look for secrets that stand on the disk already: a little at a time, remembered, only reported."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from echod.contract.status import Severity, StatusWarning
from echod.daemon.timers import Debounce
from echod.inspection.secrets import SecretScanner
from echod.store.layout import Store

STEP_BUDGET_BYTES = 128 * 1024
"""Of new and changed files so much is read in one step, which keeps a step well below a second."""


QUIET_SECONDS, MAX_DELAY_SECONDS = 5.0, 60.0
"""A store that was looked at before is looked at again when it has been calm, and in any case after a minute."""

STEP_SECONDS = 0.2
"""Between two steps; it is in no hurry."""


class SecretScanTask:
    """Which stores still have to be looked at, and what was found; owned by one thread."""

    def __init__(self) -> None:
        self._scanner = SecretScanner()
        self._stores: dict[str, Store] = {}
        self._debounce: Debounce[str] = Debounce(QUIET_SECONDS, MAX_DELAY_SECONDS)
        self._pending: dict[str, Store] = {}
        self._found_since: dict[str, float] = {}

    def seconds_until_next_step(self, monotonic: float) -> float | None:
        """For how many seconds another step would do nothing; None: as long as nothing is marked."""
        if self._pending:
            return STEP_SECONDS
        due = self._debounce.next_due()
        return None if due is None else due - monotonic

    def mark_changed(self, stores: Iterable[Store], monotonic: float) -> None:
        """Something may have changed in these stores."""
        for store in stores:
            if store.key in self._stores:
                self._debounce.mark(store.key, monotonic)
            else:
                self._pending[store.key] = store
            self._stores[store.key] = store

    def run_step(self, now: float, monotonic: float) -> bool:
        """Look at a part of what is to be looked at; whether the warnings have changed.

        Args:
            now: Unix seconds, from which on a find is known.
            monotonic: seconds of the clock that marks go by.
        """
        self._pending.update((key, self._stores[key]) for key in self._debounce.ready(monotonic))
        if not self._pending:
            return False
        key, store = next(iter(self._pending.items()))
        before = self._scanner.count(store)
        del self._pending[key]
        if not self._scanner.scan(store, STEP_BUDGET_BYTES):
            self._pending[key] = store  # behind the others
        after = self._scanner.count(store)
        if after:
            self._found_since.setdefault(key, now)
        else:
            self._found_since.pop(key, None)
        return before != after

    def warnings(self, stores: Collection[Store]) -> tuple[StatusWarning, ...]:
        """What a person should know about these stores."""
        return tuple(
            self._warning(store, self._found_since[store.key]) for store in stores if store.key in self._found_since
        )

    def _warning(self, store: Store, since: float) -> StatusWarning:
        count = self._scanner.count(store)
        locations = "1 place" if count == 1 else f"{count} places"
        text = f"What look like secrets stand in {locations} of {store.root}; agents read them, and so may others."
        fix = f"See where, and take them out: echod scrub {store.project}"
        return StatusWarning("secrets-on-disk", Severity.WARNING, since, text, fix)
