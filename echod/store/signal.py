"""Telling the upstream search index that memory changed. It takes the file away itself; we only ever touch it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from echod.store.commons import DIRTY, commons_of
from echod.store.fs import Dir, make_dir, open_dir
from echod.store.layout import Store

_INDEX = ".search-index.db"
_SIGNALS = ".rune-signals"
_DIRTY = ".echo-dirty"


def mark_dirty(store: Store) -> None:
    """Touch `tmp/.rune-signals/.echo-dirty` where somebody listens: an index in the store, or a signal directory.

    The global store has a signal of its own, which is always given. Best effort: without it the index is merely
    older than the memory.
    """
    if (commons := commons_of(store)) is not None:
        with suppress(OSError), open_dir(store.project, commons) as home:
            _touch(home, DIRTY)
        return
    listened_to = (store.root / _INDEX).exists() or _is_dir(store.project / "tmp" / _SIGNALS)
    if not listened_to:
        return
    try:
        with open_dir(store.project, ("tmp",)) as tmp:
            make_dir(tmp, _SIGNALS, 0o777)
            with tmp.below(_SIGNALS) as signals:
                _touch(signals, _DIRTY)
    except OSError:
        return  # no `tmp`, or something odd in its place: then nobody listens there


def _touch(directory: Dir, name: str) -> None:
    fd = directory.open(name, os.O_WRONLY | os.O_CREAT)
    os.utime(fd)
    os.close(fd)


def _is_dir(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
