"""The journal of a store that nobody wants kept any more: how much that is, and how it goes. Not the store itself."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from echod.store.errors import told
from echod.store.journal.journal import Journal
from echod.store.layout import Role, Store

_GOING = ".purged-"


def journal_bytes(journal: Path, store: Store) -> int:
    """What the journal keeps about a store, in bytes; 0 for nothing."""
    with told("read the journal in", journal):
        found = os.walk(_directory(journal, store))
        return sum((Path(place) / name).lstat().st_size for place, _, names in found for name in names)


def forget(journal: Path, store: Store) -> None:
    """Remove all of it: what was done there can neither be listed nor undone any more.

    Whoever calls holds the worker lock, and has closed what was open (`Engine.settle_debts`).

    Raises:
        StoreFault: it cannot be removed.
    """
    directory = _directory(journal, store)
    with told("tidy up the journal in", journal):
        finish(journal)
        if directory.exists():
            # In one step, so that nobody ever finds half a journal.
            directory.rename(journal.with_name(_GOING + directory.name))
            finish(journal)


def finish(journal: Path) -> None:
    """Remove what a process left that was killed while it forgot a store. Whoever calls holds the worker lock."""
    for going in sorted(journal.parent.glob(f"{_GOING}*")):
        shutil.rmtree(going)


def _directory(journal: Path, store: Store) -> Path:
    return Journal(journal).of(Role(store, "")).root.parent
