"""The daemon's look for secrets that stand on the disk already: a little at a time, remembered, only reported."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from echod.contract.status import Severity, Warn
from echod.daemon.timers import Debounce
from echod.inspection.secrets import Scan
from echod.store.layout import Store

BUDGET_BYTES = 128 * 1024
"""Of new and changed files so much is read in one step, which keeps a step well below a second."""


CALM_SECONDS, LONGEST_SECONDS = 5.0, 60.0
"""A store that was looked at before is looked at again when it has been calm, and in any case after a minute."""

STEP_SECONDS = 0.2
"""Between two steps; it is in no hurry."""


class Exposure:
    """Which stores still have to be looked at, and what was found; owned by one thread."""

    def __init__(self) -> None:
        self._scan = Scan()
        self._stores: dict[str, Store] = {}
        self._changed: Debounce[str] = Debounce(CALM_SECONDS, LONGEST_SECONDS)
        self._todo: dict[str, Store] = {}
        self._since: dict[str, float] = {}

    def pause(self, monotonic: float) -> float | None:
        """For how many seconds another step would do nothing; None: as long as nothing is marked."""
        if self._todo:
            return STEP_SECONDS
        due = self._changed.next_due()
        return None if due is None else due - monotonic

    def mark(self, stores: Iterable[Store], monotonic: float) -> None:
        """Something may have changed in these stores."""
        for store in stores:
            if store.key in self._stores:
                self._changed.mark(store.key, monotonic)
            else:
                self._todo[store.key] = store
            self._stores[store.key] = store

    def step(self, now: float, monotonic: float) -> bool:
        """Look at a part of what is to be looked at; whether the warnings have changed.

        Args:
            now: Unix seconds, from which on a find is known.
            monotonic: seconds of the clock that marks go by.
        """
        self._todo.update((key, self._stores[key]) for key in self._changed.ready(monotonic))
        if not self._todo:
            return False
        key, store = next(iter(self._todo.items()))
        before = self._scan.found(store)
        del self._todo[key]
        if not self._scan.look(store, BUDGET_BYTES):
            self._todo[key] = store  # behind the others
        after = self._scan.found(store)
        if after:
            self._since.setdefault(key, now)
        else:
            self._since.pop(key, None)
        return before != after

    def warnings(self, stores: Collection[Store]) -> tuple[Warn, ...]:
        """What a person should know about these stores."""
        return tuple(self._warning(store, self._since[store.key]) for store in stores if store.key in self._since)

    def _warning(self, store: Store, since: float) -> Warn:
        places = self._scan.found(store)
        where = "1 place" if places == 1 else f"{places} places"
        text = f"What look like secrets stand in {where} of {store.root}; agents read them, and so may others."
        fix = f"See where, and take them out: echod scrub {store.project}"
        return Warn("secrets-on-disk", Severity.WARNING, since, text, fix)
