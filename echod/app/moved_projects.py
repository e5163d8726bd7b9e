"""Recognise a project that was renamed or moved, and carry along what echod recorded about it.

The records are its journal (undo, log), the rows of its stores in the database (ages, references, pins, jobs) and its
lines in the lists of projects and pauses. All of it is named by the project's path. A project counts as moved only if
its old directory is gone; a copy is a project of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from echod.app.forget_project import possible_stores
from echod.errors import EchodError
from echod.files import read_regular
from echod.log import get_logger
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import MAX_FILE_BYTES, Document
from echod.projects.registry import ProjectRegistry
from echod.runtime.locks import WorkerBusyError, this_process, worker_lock
from echod.state import repair
from echod.state.database import Database
from echod.store import layout
from echod.store.journal import moves
from echod.store.journal.journal import Journal
from echod.store.layout import Store, store_at

_MIN_COMMON_SHARE: Final = 0.8
"""Of the entries of two memories, how many must be the same so that they are one."""

log = get_logger(__name__)


class MovedProject(NamedTuple):
    """A project and its earlier directory."""

    old: Path
    new: Path


class RecordedProjects:
    """The records about projects by their paths: journals, rows of the database, and lists."""

    def __init__(self, journal: Path, database: Database, registry: ProjectRegistry, lock_file: Path) -> None:
        self._journal = Journal(journal)
        self._database = database
        self._registry = registry
        self._lock_file = lock_file

    def adopt_moved(self, projects: Iterable[Path], *, lock_seconds: float) -> tuple[MovedProject, ...]:
        """Recognise which of these projects are new at their paths and were moved there, and carry everything along.

        A project that is not recognised now, because a job runs or a file cannot be read, is looked at the next time.
        """
        new_projects = [project for project in dict.fromkeys(projects) if self._is_new(project)]
        if not new_projects or not (vanished := self._vanished_stores()):
            return ()
        origins = {new: self._find_origin(new, vanished) for new in new_projects}
        adopted: list[MovedProject] = []
        for moved in (MovedProject(old, new) for new, old in origins.items() if old is not None):
            try:
                self.move(moved, lock_seconds=lock_seconds)
            except WorkerBusyError:
                log.info("move_deferred", old=str(moved.old), new=str(moved.new))
            except EchodError as error:
                log.warning("move_failed", old=str(moved.old), new=str(moved.new), error=str(error))
            else:
                log.info("project_moved", old=str(moved.old), new=str(moved.new))
                adopted.append(moved)
        return tuple(adopted)

    def move(self, moved: MovedProject, *, lock_seconds: float) -> None:
        """Carry along everything about a project. Idempotent.

        Raises:
            RefusedError: there is a history at the new path already; nothing was changed.
            WorkerBusyError: a job ran for all of that time.
            StoreError, StateError: a file or the database cannot be written.
        """
        with worker_lock(self._lock_file, this_process(), lock_seconds):
            moves.complete_moves(self._journal)
            pairs = tuple(zip(possible_stores(moved.old), possible_stores(moved.new), strict=True))
            for old, new in pairs:
                moves.move_journal(self._journal, old, new)
            keys = {old.key: new.key for old, new in pairs}
            repair.move_project_rows(self._database, str(moved.old), str(moved.new), keys)
            self._registry.move(moved.old, moved.new)

    def knows(self, project: Path) -> bool:
        """Return whether anything is recorded about a project at this path."""
        stores = possible_stores(project)
        return (
            project in self._registry.roots()
            or any(moves.has_journal(self._journal, store) for store in stores)
            or repair.count_project_rows(self._database, str(project), [store.key for store in stores]) > 0
        )

    def known_below(self, directory: Path) -> tuple[Path, ...]:
        """Return the recorded projects at or below a directory, which need not exist."""
        recorded = (
            *self._registry.roots(),
            *(store.project for store in self._journal.stores()),
            *(store_at(Path(key)).project for key in repair.list_entry_stores(self._database)),
        )
        return tuple(sorted({project for project in recorded if project.is_relative_to(directory)}))

    def _is_new(self, project: Path) -> bool:
        return not any(moves.has_journal(self._journal, store) for store in possible_stores(project))

    def _vanished_stores(self) -> tuple[Store, ...]:
        stores = dict.fromkeys(
            (*moves.vanished_stores(self._journal), *map(_store, repair.list_entry_stores(self._database)))
        )
        return tuple(store for store in stores if not os.path.lexists(store.root))

    def _find_origin(self, project: Path, vanished: Iterable[Store]) -> Path | None:
        """Return where a project was before; None if no earlier project fits, or several do."""
        for fits in (self._has_our_files, self._has_same_entries):
            origins = {
                old.project
                for old in vanished
                for new in layout.find_stores_in_resolved_root(project)
                if new.root.relative_to(new.project) == old.root.relative_to(old.project) and fits(old, new)
            }
            if origins:
                return origins.pop() if len(origins) == 1 else None
        return None

    def _has_our_files(self, old: Store, new: Store) -> bool:
        return moves.left_by_same_store(self._journal, old, new)

    def _has_same_entries(self, old: Store, new: Store) -> bool:
        recorded = repair.list_present_entries(self._database, old.key)
        if not recorded:
            return False
        present = _present_entries(new)
        return len(recorded & present) >= _MIN_COMMON_SHARE * len(recorded | present)


def _store(key: str) -> Store:
    return store_at(Path(key))


def _present_entries(store: Store) -> frozenset[tuple[str, str]]:
    """Return role and id of each entry in a store's memory files. Unreadable files are left out."""
    found: set[tuple[str, str]] = set()
    for role in layout.list_roles(store).roles:
        try:
            document = parse(read_regular(role.memory, MAX_FILE_BYTES))
        except OSError:
            continue
        if isinstance(document, Document):
            found.update((role.name, identity) for identity in entry_ids(role.name, document) if identity)
    return frozenset(found)
