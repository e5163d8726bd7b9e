"""Keep the search index up to date in a thread of its own, so that a search finds nothing left to read.

A search is correct without it, because it compares the files itself. The thread exists for speed, so an error is logged
and the next request tries again. The index stays open while the daemon runs, since closing it would write to the disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Self

from echod.log import get_logger
from echod.search.documents import DocumentSource
from echod.search.finder import DocumentFinder
from echod.store.layout import Store

log = get_logger(__name__)

STOP_SECONDS = 5.0
"""How long the stop waits for a refresh. A killed one leaves a usable index."""


class SearchIndexer:
    """The thread, and the stores that it has still to look at.

    Args:
        finder: the index.
        sources_of: returns the sources of a store.
        shared_sources: returns the sources that belong to no project.
    """

    def __init__(
        self,
        finder: DocumentFinder,
        *,
        sources_of: Callable[[Store], Iterable[DocumentSource]],
        shared_sources: Callable[[], Iterable[DocumentSource]],
    ) -> None:
        self._finder = finder
        self._sources_of = sources_of
        self._shared_sources = shared_sources
        self._pending: dict[str, Store] = {}
        self._shared_requested = False
        self._condition = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="search-index", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._condition:
            self._stopped = True
            self._condition.notify()
        self._thread.join(STOP_SECONDS)
        if not self._thread.is_alive():
            self._finder.close()

    def request(self, stores: Iterable[Store]) -> None:
        """Look at these stores soon."""
        with self._condition:
            self._pending.update((store.key, store) for store in stores)
            self._condition.notify()

    def request_shared(self) -> None:
        """Look at the global store soon."""
        with self._condition:
            self._shared_requested = True
            self._condition.notify()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            try:
                self._finder.refresh(work)
                if not work[0].project:
                    self._finder.forget_missing()
            except Exception:
                log.exception("search_index_failed")

    def _next(self) -> list[DocumentSource] | None:
        """Wait for work. Return the sources of one store, so that a stop does not wait for all; None to stop."""
        with self._condition:
            while not (self._stopped or self._pending or self._shared_requested):
                self._condition.wait()
            if self._stopped:
                return None
            if self._shared_requested:
                self._shared_requested = False
                return list(self._shared_sources())
            store = self._pending.pop(next(iter(self._pending)))
        return list(self._sources_of(store))
