"""Find the stores of the projects that echod maintains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from echod.errors import GARBLED_ERRORS
from echod.store import layout
from echod.store.layout import Store


@dataclass(frozen=True)
class DiscoveredStores:
    """The stores of some projects at one moment.

    The directories of `missing` projects cannot be seen (deleted, not mounted); they stay registered. `expected_roots`
    are directories that would be stores if they were made.
    """

    stores: tuple[Store, ...] = ()
    missing: tuple[Path, ...] = ()
    without_store: tuple[Path, ...] = ()
    expected_roots: frozenset[Path] = frozenset()

    def store_containing(self, path: Path) -> Store | None:
        """Return the store that contains `path`; None if none does."""
        return next((store for above in (path, *path.parents) if (store := self.stores_by_root.get(above))), None)

    @cached_property
    def stores_by_root(self) -> Mapping[Path, Store]:
        """The stores by their directories."""
        return {store.root: store for store in self.stores}

    def stores_in(self, project: Path) -> tuple[Store, ...]:
        """Return the stores of one project."""
        return tuple(store for store in self.stores if store.project == project)

    @property
    def projects(self) -> tuple[Path, ...]:
        """The projects that have a store, in order, each once."""
        return tuple(dict.fromkeys(store.project for store in self.stores))


def _resolve(project: Path) -> Path:
    try:
        return layout.project_root(project)
    except (OSError, *GARBLED_ERRORS):
        return project  # it counts as missing


def discover_stores(projects: Iterable[Path]) -> DiscoveredStores:
    """Find the stores of each project. A project whose directory cannot be read counts as missing."""
    stores: list[Store] = []
    missing: list[Path] = []
    without_store: list[Path] = []
    expected_roots: set[Path] = set()
    for project in dict.fromkeys(map(_resolve, projects)):
        expected_roots.update(project / below for below in layout.STORE_DIRS)
        try:
            found_stores = layout.find_stores_in_resolved_root(project) if project.is_dir() else None
        except (OSError, *GARBLED_ERRORS, RuntimeError):  # links that form a loop are a RuntimeError
            found_stores = None
        if found_stores is None:
            missing.append(project)
        elif found_stores:
            stores.extend(found_stores)
        else:
            without_store.append(project)
    expected_roots.difference_update(store.root for store in stores)
    return DiscoveredStores(tuple(stores), tuple(missing), tuple(without_store), frozenset(expected_roots))
