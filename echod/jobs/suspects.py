"""Entries that read like instructions to agents: found for `echod review`, never obeyed, never changed.

What such an entry is, is decided by `echod.memory.suspicion`; docs/security.md tells it to users.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from echod.memory.document import SIZE_LIMIT, Document, parse
from echod.memory.suspicion import speaks_to_agents
from echod.store import layout
from echod.store.layout import Role, Store


@dataclass(frozen=True, slots=True)
class Suspect:
    """An entry that seems to speak to its reader: its heading, the kind of phrase, and when its file was written."""

    role: Role
    title: str
    phrase: str
    at: float


def suspects(store: Store) -> Iterator[Suspect]:
    """The entries of a store's memory files that a person should read. Files that cannot be read are told elsewhere."""
    try:
        roles = layout.roles_of(store)
    except OSError:
        return
    for role in roles:
        yield from _in(role)


def _in(role: Role) -> Iterator[Suspect]:
    try:
        if role.memory.is_symlink() or not role.memory.is_file() or role.memory.stat().st_size > SIZE_LIMIT:
            return
        at, document = role.memory.stat().st_mtime, parse(role.memory.read_bytes())
    except OSError:
        return
    if not isinstance(document, Document):
        return
    for block in document.blocks:
        if block.entry is not None and (phrase := speaks_to_agents(block.text)) is not None:
            yield Suspect(role, block.entry.title, phrase, at)
