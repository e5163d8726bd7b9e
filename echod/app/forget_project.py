"""Data echod stores about a project, and how `remove --purge` deletes it.

The memory itself is never touched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from echod.errors import EchodError
from echod.inbox.spool import Spool
from echod.paths import Paths
from echod.projects.worktrees import main_worktree_path
from echod.runtime.locks import this_process, worker_lock
from echod.sessions.journal import RootJournal
from echod.sessions.roots import SessionRoot
from echod.state import repair
from echod.state.database import Database
from echod.store.engine import Engine
from echod.store.journal import retention
from echod.store.layout import STORE_DIRS, Store, solutions_store
from echod.store.leftovers import list_private_files
from echod.store.limits import EngineLimits

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
