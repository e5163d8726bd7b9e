"""Find the stores of the projects that echod maintains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from echod.errors import GARBLED_ERRORS
from echod.projects.location import ProjectLocator
from echod.store import layout
from echod.store.layout import Store
from echod.store.skipped import SkippedItem, find_linked_stores


class ExcludedDirectory(NamedTuple):
    """A directory that is in the list of projects and never a project. `reason` is part of a sentence."""

    root: Path
    reason: str


@dataclass(frozen=True)
class DiscoveredStores:
    """The stores of some projects at one moment.

    The directories of `missing` projects cannot be seen (deleted, not mounted); they stay registered. `expected_roots`
    are directories that would be stores if they were made. `linked` are memory directories that are not used, because
    a symbolic link is in their path. `excluded` are listed directories that are never projects.
    """

    stores: tuple[Store, ...] = ()
    missing: tuple[Path, ...] = ()
    without_store: tuple[Path, ...] = ()
    expected_roots: frozenset[Path] = frozenset()
    linked: tuple[SkippedItem, ...] = ()
    excluded: tuple[ExcludedDirectory, ...] = ()

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


def discover_stores(projects: Iterable[Path], locator: ProjectLocator) -> DiscoveredStores:
    """Find the stores of each project. A project whose directory cannot be read counts as missing."""
    stores: list[Store] = []
    missing: list[Path] = []
    without_store: list[Path] = []
    linked: list[SkippedItem] = []
    excluded: list[ExcludedDirectory] = []
    expected_roots: set[Path] = set()
    for project in dict.fromkeys(map(_resolve, projects)):
        if (reason := locator.exclusion_reason(project)) is not None:
            excluded.append(ExcludedDirectory(project, reason))
            continue
        expected_roots.update(project / below for below in layout.STORE_DIRS)
        try:
            found_stores = locator.find_stores(project) if project.is_dir() else None
        except (OSError, *GARBLED_ERRORS):
            found_stores = None
        if found_stores is None:
            missing.append(project)
            continue
        links = find_linked_stores(project)
        linked.extend(links)
        if found_stores:
            stores.extend(found_stores)
        elif not links:
            without_store.append(project)
    expected_roots.difference_update(store.root for store in stores)
    return DiscoveredStores(
        tuple(stores), tuple(missing), tuple(without_store), frozenset(expected_roots), tuple(linked), tuple(excluded)
    )
