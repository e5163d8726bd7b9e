"""Recognise a project that was renamed or moved, and carry along what echod recorded about it.

The records are its journal (undo, log), the rows of its stores in the database (ages, references, pins, jobs) and its
lines in the lists of projects and pauses. All of it is named by the project's path. A project counts as moved only if
its old directory is gone; a copy is a project of its own.

The memory itself is never touched.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from echod.errors import EchodError
from echod.files import read_regular
from echod.inbox.spool import Spool
from echod.log import get_logger
from echod.memory import MAX_FILE_BYTES
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document
from echod.paths import Paths
from echod.projects.discovery import main_worktree_path
from echod.projects.registry import ProjectRegistry
from echod.runtime.locks import WorkerBusyError, this_process, worker_lock
from echod.sessions.journal import RootJournal
from echod.sessions.roots import SessionRoot
from echod.state import repair
from echod.state.database import Database
from echod.store import layout
from echod.store.engine import Engine
from echod.store.errors import EngineLimits
from echod.store.journal import journal, retention
from echod.store.journal.journal import Journal
from echod.store.layout import STORE_DIRS, Store, solutions_store, store_at
from echod.store.leftovers import list_private_files

_CLOSE_TIMEOUT_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.2
_SETTLE_SECONDS: Final = 1.0
_SETTLE_LOCK_SECONDS: Final = 10.0


class FileStillOpenError(EchodError):
    """Another program may still write to a file that echod replaced, and that text must not be lost."""


@dataclass(frozen=True, slots=True)
class ProjectData:
    """The data about a project.

    Attributes:
        commits: number of commits that `echod log` lists and `echod undo` can reverse.
        rows: rows in the database: jobs, references, first-seen dates and so on.
        event_names: names of its spooled hook events.
        session_bytes: what an undo of its conversation archives would need. The archives and their receipts stay.
    """

    commits: int
    journal_bytes: int
    rows: int
    event_names: tuple[str, ...]
    session_bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self.commits or self.journal_bytes or self.rows or self.event_names or self.session_bytes)


def possible_stores(project: Path) -> tuple[Store, ...]:
    """Return the stores that a project may have had, whether or not they exist."""
    return (*(Store(project, project / below) for below in STORE_DIRS), solutions_store(project))


def find_project_data(
    project: Path,
    journal: Path,
    database: Database | None,
    spool: Spool,
    clock: Callable[[], float],
    session_roots: Iterable[SessionRoot] = (),
) -> ProjectData:
    """Return the data about a project. `database` is None if there is none."""
    stores = possible_stores(project)
    engine = Engine(journal, limits=EngineLimits(), clock=clock)
    roots = tuple(session_roots)
    keys = [*(store.key for store in stores), *(root.key for root in roots)]
    return ProjectData(
        commits=len(engine.history(stores)),
        journal_bytes=sum(retention.journal_bytes(journal, store) for store in stores),
        rows=0 if database is None else repair.count_project_rows(database, str(project), keys),
        event_names=_event_names(spool, project),
        session_bytes=sum(RootJournal(root).size() for root in roots),
    )


def close_commits(project: Path, journal: Path, clock: Callable[[], float]) -> None:
    """Close every commit now instead of a day later: merge late writes and delete the displaced files.

    The caller holds the worker lock.

    Raises:
        FileStillOpenError: another program still has a file open that echod replaced.
        StoreError: the journal cannot be read.
    """
    for store in possible_stores(project):
        if not _close_store_commits(store, journal, clock, _CLOSE_TIMEOUT_SECONDS):
            raise FileStillOpenError(
                f"A file in {store.root} that echod replaced is still open in another program, which may still "
                "write to it. Nothing was removed. Try again when the program has ended."
            )


def settle_stores(paths: Paths, stores: Iterable[Store], clock: Callable[[], float]) -> tuple[Path, ...]:
    """Close the commits of these stores as far as possible, and empty and remove their private directories.

    Return the files that remain there: another program has them open, or no commit knows them.

    Raises:
        WorkerBusyError: a job is running.
        StoreError: the journal cannot be read.
    """
    existing = [store for store in stores if store.root.is_dir()]
    remaining: list[Path] = []
    if not existing:
        return ()
    with worker_lock(paths.worker_lock, this_process(), _SETTLE_LOCK_SECONDS):
        for store in existing:
            _close_store_commits(store, paths.journal, clock, _SETTLE_SECONDS)
            Engine(paths.journal, limits=EngineLimits(), clock=clock).remove_private_directories(store)
            remaining += list_private_files(store)
    return tuple(remaining)


def _close_store_commits(store: Store, journal: Path, clock: Callable[[], float], seconds: float) -> bool:
    """Close the commits of a store, waiting at most `seconds`, and return whether none is open."""
    engine = Engine(journal, limits=EngineLimits(displaced_hours=0.0), clock=clock)
    engine.recover([store])
    deadline = time.monotonic() + seconds
    while engine.has_open_commits(store):
        engine.merge_late_writes(store)
        if not engine.has_open_commits(store):
            break
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def delete_project_data(
    project: Path, journal: Path, database: Database, spool: Spool, session_roots: Iterable[SessionRoot] = ()
) -> None:
    """Delete all data about a project. The caller holds the worker lock and has called `close_commits`.

    Raises:
        StoreError: the journal cannot be removed.
        StateError: the database cannot be written.
    """
    stores = possible_stores(project)
    for store in stores:
        retention.delete_journal(journal, store)
    roots = tuple(session_roots)
    for root in roots:
        RootJournal(root).purge()
    keys = [*(store.key for store in stores), *(root.key for root in roots)]
    repair.delete_project_rows(database, str(project), keys)
    database.vacuum()
    spool.remove(_event_names(spool, project))


def _event_names(spool: Spool, project: Path) -> tuple[str, ...]:
    names = []
    for spooled_event in spool.list_events():
        try:
            event = spool.read(spooled_event)
        except FileNotFoundError:
            continue
        if event is not None and _is_from_project(event, project):
            names.append(spooled_event.name)
    return tuple(names)


def _is_from_project(event: Mapping[str, object], project: Path) -> bool:
    directory = event.get("cwd")
    try:
        return isinstance(directory, str) and main_worktree_path(Path(directory)).is_relative_to(project)
    except (OSError, ValueError):  # not a path
        return False


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
            journal.complete_moves(self._journal)
            pairs = tuple(zip(possible_stores(moved.old), possible_stores(moved.new), strict=True))
            for old, new in pairs:
                journal.move_journal(self._journal, old, new)
            keys = {old.key: new.key for old, new in pairs}
            repair.move_project_rows(self._database, str(moved.old), str(moved.new), keys)
            self._registry.move(moved.old, moved.new)

    def knows(self, project: Path) -> bool:
        """Return whether anything is recorded about a project at this path."""
        stores = possible_stores(project)
        return (
            project in self._registry.roots()
            or any(journal.has_journal(self._journal, store) for store in stores)
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
        return not any(journal.has_journal(self._journal, store) for store in possible_stores(project))

    def _vanished_stores(self) -> tuple[Store, ...]:
        stores = dict.fromkeys(
            (*journal.vanished_stores(self._journal), *map(_store, repair.list_entry_stores(self._database)))
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
        return journal.left_by_same_store(self._journal, old, new)

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
