"""Which entry does a person mean by the beginning of an id? The current project first, memory before archive.

Where several begin so, a person at a terminal is asked and a script is refused; both see the candidates.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import click

from echod.app.context import Lookout
from echod.cli.by_hand import Commons, Place, stores_meant
from echod.cli.shell import Shell
from echod.cli.text import called, fitted, plain
from echod.errors import UsageError
from echod.jobs.archives import Kept, archived_entries
from echod.memory.document import parse, parse_block
from echod.memory.identity import AmbiguousEntryError, UnknownEntryError, entry_ids, resolve
from echod.memory.model import Block, Document
from echod.store.layout import Role, Store, commons_of, roles_of

_MOST_CANDIDATES = 20


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that stands in a memory file."""

    role: Role
    document: Document
    id: str

    @property
    def block(self) -> Block:
        """Its block."""
        ids = entry_ids(self.role.name, self.document)
        return self.document.blocks[ids.index(self.id)]

    @property
    def title(self) -> str:
        """Its title."""
        return _title(self.block)


class Archived(NamedTuple):
    """An entry that stands in no memory file any more: its copies in the archive of its role, oldest first."""

    role: Role
    id: str
    copies: tuple[Kept, ...]

    @property
    def title(self) -> str:
        """The title of its newest copy."""
        return _title(parse_block(self.copies[-1].entry.text))


Hit = TypeVar("Hit", Found, Archived)


def in_memory(shell: Shell, lookout: Lookout, place: Place, wanted: Sequence[str]) -> list[Found]:
    """The entries of memory files that these ids, or beginnings of ids, mean.

    Args:
        shell: where the command was called.
        lookout: how files are looked at.
        place: only entries there are meant. None: those of the current directory's project, then of the others.
        wanted: ids or beginnings of ids.

    Raises:
        UsageError: there is none, or there are several and nobody to ask.
        EchodError: a file cannot be read.
    """
    rings = _rings(shell, lookout, place)
    return [_in_memory(lookout, rings, prefix, place) for prefix in wanted]


def anywhere(shell: Shell, lookout: Lookout, place: Place, wanted: str) -> Found | Archived:
    """The entry that an id, or the beginning of one, means; one in a memory file before one in an archive.

    Raises:
        UsageError, EchodError: as `in_memory`.
    """
    for roles in _rings(shell, lookout, place):
        if found := _matching(wanted, (hit for role in roles for hit in entries_of(lookout, role))):
            return _chosen(wanted, found)
        if kept := _matching(wanted, (hit for role in roles for hit in archived_of(role))):
            return _chosen(wanted, kept)
    raise _unknown(wanted, place)


def entries_of(lookout: Lookout, role: Role) -> tuple[Found, ...]:
    """The entries of a role's memory file, in file order; none where it cannot be understood.

    Raises:
        EchodError: it cannot be read.
    """
    document = parse(lookout.reader.peek(role).memory.text)
    if not isinstance(document, Document):
        return ()
    return tuple(Found(role, document, identity) for identity in entry_ids(role.name, document) if identity)


def archived_of(role: Role) -> tuple[Archived, ...]:
    """What the archive of a role holds, by id; also of entries that are in the memory again.

    Raises:
        EchodError: it cannot be read.
    """
    copies: dict[str, list[Kept]] = {}
    for kept in archived_entries(role):
        if kept.entry.text:
            copies.setdefault(kept.entry.id, []).append(kept)
    return tuple(Archived(role, identity, tuple(found)) for identity, found in copies.items() if identity)


def global_roles(lookout: Lookout) -> tuple[Role, ...]:
    """The global memory and the doc packs, as far as they are there."""
    memory, packs = lookout.packs.memory, lookout.packs.stores[1]
    own = (memory,) if memory.path.is_dir() else ()
    return (*own, *(roles_of(packs) if packs.root.is_dir() else ()))


def flag_of(role: Role) -> str:
    """What a command about an entry of the role has to say beside its id, with a blank before it; mostly nothing."""
    return "" if commons_of(role.store) is None else " --global"


def _rings(shell: Shell, lookout: Lookout, place: Place) -> tuple[tuple[Role, ...], ...]:
    """Where to look, the nearest roles first."""
    if isinstance(place, Commons):
        return (global_roles(lookout),)
    near = stores_meant(shell, place) or ()
    far = () if place is not None else tuple(store for store in lookout.roster().stores if store not in near)
    return tuple(ring for stores in (near, far) if (ring := _roles(stores)))


def _roles(stores: Iterable[Store]) -> tuple[Role, ...]:
    return tuple(role for store in stores for role in roles_of(store))


def _in_memory(lookout: Lookout, rings: Sequence[Sequence[Role]], wanted: str, place: Place) -> Found:
    for roles in rings:
        if found := _matching(wanted, (hit for role in roles for hit in entries_of(lookout, role))):
            return _chosen(wanted, found)
    for roles in rings:
        if kept := _matching(wanted, (hit for role in roles for hit in archived_of(role))):
            first = kept[0]
            raise UsageError(
                f"{first.id} stands in no memory file, but in the archive of {called(first.role.name)}. "
                f"To bring it back: echod restore {first.id}{flag_of(first.role)}"
            )
    raise _unknown(wanted, place)


def _matching(wanted: str, hits: Iterable[Hit]) -> list[Hit]:
    """What may be meant: nothing, one, or several."""
    named: dict[str, list[Hit]] = {}
    for hit in hits:
        named.setdefault(hit.id, []).append(hit)
    try:
        ids: tuple[str, ...] = (resolve(wanted, named),)
    except UnknownEntryError:
        return []
    except AmbiguousEntryError as error:
        ids = error.candidates
    return [hit for identity in ids for hit in named[identity]]


def _chosen(wanted: str, hits: Sequence[Hit]) -> Hit:
    if len(hits) == 1:
        return hits[0]
    lines: list[str] = [_candidate(hit) for hit in hits[:_MOST_CANDIDATES]]
    if len(hits) > _MOST_CANDIDATES:
        lines.append(f"  and {len(hits) - _MOST_CANDIDATES} more")
    what = f"{plain(wanted)} could be {len(hits)} entries"
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        says = "\n".join([f"{what}; give more digits of the id, or name the project.", *lines])
        raise UsageError(says)
    click.echo("\n".join([f"{what}:", *(f"{n:>3}{line}" for n, line in enumerate(lines, 1))]))
    while True:
        number: int = click.prompt("Which one", type=int)
        if 1 <= number <= min(len(hits), _MOST_CANDIDATES):
            return hits[number - 1]


def _candidate(hit: Found | Archived) -> str:
    title = textwrap.shorten(plain(hit.title) or "(untitled)", 44, placeholder="...")
    return f"  {hit.id}  {called(hit.role.name)}: {title}  {fitted(hit.role.store.key, 40)}"


def _title(block: Block) -> str:
    return block.entry.title if block.entry else block.text.strip().partition("\n")[0]


def _unknown(wanted: str, place: Place) -> UsageError:
    every = "echod show --global" if isinstance(place, Commons) else "echod show"
    return UsageError(f"No entry has an id that begins with {plain(wanted)!r}; `{every}` lists the entries.")
