"""The global store: the memory of a user that belongs to no project, in Claude Code's own directory.

    {home}/echoes/global/MEMORY.md                    entries that people elevated; the role ""
    {home}/echoes/global/doc-packs/{stack}/MEMORY.md  a role each, of a store of their own
    {home}/echoes/global/manifests/{stack}.json       what is known of a pack; no memory, written by `echod.packs`
    {home}/echoes/global/.lock, .global-echo-dirty    the lock and the signal of all programs that write there

Everything that holds for a project's store holds here, with other places for lock and signal.
"""

from __future__ import annotations

from pathlib import Path

from echod.store.layout import PACKS, Role, Store

MANIFESTS = "manifests"
LOCK = ".lock"
DIRTY = ".global-echo-dirty"

_BELOW = ("echoes", "global")


def global_store(home: Path) -> Store:
    """The store of elevated entries. `home` is Claude Code's own directory, resolved; nothing needs to exist."""
    return Store(home, home.joinpath(*_BELOW))


def packs_store(home: Path) -> Store:
    """The store whose roles are the installed doc packs."""
    return Store(home, home.joinpath(*_BELOW, PACKS))


def global_role(home: Path) -> Role:
    """The global memory file's role: it has no directory of its own."""
    return Role(global_store(home), "")


def commons_of(store: Store) -> tuple[str, ...] | None:
    """Where the global store is below `store.project`, if `store` is a part of it; None for a project's store."""
    parts = store.root.relative_to(store.project).parts
    return _BELOW if parts[: len(_BELOW)] == _BELOW else None
