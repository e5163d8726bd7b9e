"""What echod keeps of a project besides its memory, and how that goes. The memory itself is never touched."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from echod.errors import EchodError
from echod.inbox.spool import Spool
from echod.projects.worktrees import original
from echod.state import repair
from echod.state.database import Database
from echod.store.engine import Engine
from echod.store.journal import retention
from echod.store.layout import STORE_DIRS, Store
from echod.store.limits import EngineLimits

_PATIENCE_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.2


class StillFollowedError(EchodError):
    """Another program may still write into a file that echod replaced, and what it writes must not be lost."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is known of a project.

    Attributes:
        changes: commits that `echod log` lists and `echod undo` may take back.
        journal_bytes: what these take on the disk.
        rows: jobs, references, ages and the like in the database.
        events: names of spooled reports of agents.
    """

    changes: int
    journal_bytes: int
    rows: int
    events: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.changes or self.journal_bytes or self.rows or self.events)


def stores_ever(project: Path) -> tuple[Store, ...]:
    """The stores that a project may have had, whether or not they are there."""
    return tuple(Store(project, project / below) for below in STORE_DIRS)


def kept(project: Path, journal: Path, database: Database | None, spool: Spool, clock: Callable[[], float]) -> Kept:
    """Look at what is kept; `database` is None where there is none."""
    stores = stores_ever(project)
    engine = Engine(journal, limits=EngineLimits(), clock=clock)
    return Kept(
        changes=len(engine.history(stores)),
        journal_bytes=sum(retention.journal_bytes(journal, store) for store in stores),
        rows=0 if database is None else repair.count(database, str(project), [store.key for store in stores]),
        events=_events(spool, project),
    )


def settle_up(project: Path, journal: Path, clock: Callable[[], float]) -> None:
    """Finish with every commit now rather than after its day: what came late is merged, the replaced files go.

    Whoever calls holds the worker lock.

    Raises:
        StillFollowedError: a program still has a file open that echod replaced.
        StoreFault: the journal cannot be read.
    """
    for store in stores_ever(project):
        _close(store, journal, clock)


def forget(project: Path, journal: Path, database: Database, spool: Spool) -> None:
    """Remove all that is kept. Whoever calls holds the worker lock, and has settled up.

    Raises:
        StoreFault: the journal cannot be removed.
        StateError: the database cannot be written.
    """
    stores = stores_ever(project)
    for store in stores:
        retention.forget(journal, store)
    repair.forget(database, str(project), [store.key for store in stores])
    database.release_space()
    spool.take(_events(spool, project))


def _close(store: Store, journal: Path, clock: Callable[[], float]) -> None:
    engine = Engine(journal, limits=EngineLimits(displaced_hours=0.0), clock=clock)
    engine.recover([store])
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while engine.owes(store):
        engine.settle_debts(store)
        if engine.owes(store) and time.monotonic() > deadline:
            raise StillFollowedError(
                f"A file in {store.root} that echod replaced is still open in another program, which may yet write "
                "into it. Nothing was removed; try again when the program has ended."
            )
        time.sleep(_LOOK_SECONDS)


def _events(spool: Spool, project: Path) -> tuple[str, ...]:
    found = []
    for spooled in spool.waiting():
        try:
            event = spool.read(spooled)
        except FileNotFoundError:
            continue
        if event is not None and _is_from(event, project):
            found.append(spooled.name)
    return tuple(found)


def _is_from(event: Mapping[str, object], project: Path) -> bool:
    directory = event.get("cwd")
    try:
        return isinstance(directory, str) and original(Path(directory)).is_relative_to(project)
    except (OSError, ValueError):  # no path at all
        return False
