"""Follow a store whose directory was moved: find its journal by what lies in the store, and carry the journal along.

A journal is named by the path of its store, so a renamed project would begin without undo. The files that echod wrote
keep their modification times when a directory is moved, to the nanosecond, so they show whose journal it is.

The caller holds the worker lock for what writes here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from echod.store.errors import RefusedError, as_store_error
from echod.store.journal.files import fsync_directory, write_durable
from echod.store.journal.journal import PROJECT_FILE, Journal, read_store
from echod.store.layout import Store


def vanished_stores(journal: Journal) -> tuple[Store, ...]:
    """Return the stores that have a journal and whose directories do not exist any more."""
    return tuple(store for store in journal.stores() if not os.path.lexists(store.root))


def has_journal(journal: Journal, store: Store) -> bool:
    """Return whether echod ever committed something in a store at this path."""
    return journal.store_directory(store).exists()


def left_by_same_store(journal: Journal, old: Store, new: Store) -> bool:
    """Return whether a file lies in `new` as echod left it in `old`."""
    return any(
        _modified_at(new.root / path) == modified_at
        for role in journal.roles(old)
        for path, modified_at in journal.role_journal(role).own_mtimes().items()
    )


def move_journal(journal: Journal, old: Store, new: Store) -> None:
    """Make the journal of `old` that of `new`. Idempotent, also after a kill at any step.

    Raises:
        RefusedError: `new` has a journal of its own.
        StoreError: the file system failed.
    """
    source, target = journal.store_directory(old), journal.store_directory(new)
    with as_store_error("move the journal of", old.root):
        if not source.exists():
            return
        if target.exists():
            raise RefusedError(
                f"echod has changed {new.root} since it is there, so the history of {old.root} cannot be joined to it. "
                "Nothing was changed."
            )
        # The name of the store first: a journal that names another path than its own is completed later.
        write_durable(source / PROJECT_FILE, new.key.encode())
        source.rename(target)
        fsync_directory(journal.root)


def complete_moves(journal: Journal) -> None:
    """Complete the moves of journals that a kill interrupted."""
    for directory, store in _journal_directories(journal):
        target = journal.store_directory(store)
        if directory != target and not target.exists():
            with as_store_error("move the journal of", store.root):
                directory.rename(target)
                fsync_directory(journal.root)


def _journal_directories(journal: Journal) -> Iterator[tuple[Path, Store]]:
    for file in sorted(journal.root.glob(f"*/{PROJECT_FILE}")):
        if (store := read_store(file)) is not None:
            yield file.parent, store


def _modified_at(path: Path) -> int | None:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return None
