"""Where single review items come from: what agents asked for, what reads badly, what was set aside."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from echod.files import Remembered, Stamp
from echod.inspection.entries import Glance, Seen, seen_stamp
from echod.inspection.review_items import Claim, Item, Kind, Replaced, SetAside, Suspicious, Told, item_id
from echod.memory.doubt import Doubt
from echod.memory.layers import Layer
from echod.memory.limits import SIZE_LIMIT
from echod.plain_file import read_plain
from echod.store import layout
from echod.store.digests import digest
from echod.store.findings_names import before_set_aside
from echod.store.journal.notices import Question
from echod.store.layout import Role

_GIVEN_BY_A_PERSON = frozenset({Layer.ETCHED, Layer.NOTES})

_BECAUSE: Mapping[str, str] = {
    Doubt.SEVERAL: "it is not the only one of that title",
    Doubt.NEWER: "it is newer",
    Doubt.PINNED: "it was pinned",
    Doubt.STUCK: "a code block or comment above it is never closed",
}


def claim(role: Role, question: Question, entry: Seen) -> Iterator[Item]:
    """That an agent claims a layer for an entry, unless a person gave one.

    The item keeps its id though the entry's changes, so that an answer holds; the same is so for replacements.
    """
    if entry.layer is None or entry.layer in _GIVEN_BY_A_PERSON:
        return
    layer = Layer(question.wanted)
    text = f"An agent wants this entry in the layer {layer.value}; it was stored as {entry.layer.value}."
    identity = item_id(role, Kind.CLAIM, question.entry, layer.value, entry.says)
    yield Item(identity, role, Kind.CLAIM, question.at, text, (entry.title,), Claim(entry.id, layer))


def replacements(role: Role, question: Question, entry: Seen, entries: Mapping[str, Seen]) -> Iterator[Item]:
    """Each entry that another one says it replaces; or that there is none."""
    others = [other for other in entries.values() if other.plain_title == question.wanted and other.id != entry.id]
    for other in others:
        why = _why(other, question)
        text = f"{entry.title!r} ({entry.id}) says that it replaces this entry, which stayed because {why}."
        identity = item_id(role, Kind.SUPERSEDES, question.entry, entry.says, other.id, other.says)
        yield Item(identity, role, Kind.SUPERSEDES, question.at, text, (other.title,), Replaced(other.id))
    if not others and question.doubt == Doubt.NONE:
        text = f"This entry says that it replaces {question.wanted!r}, but no entry has that title."
        identity = item_id(role, Kind.SUPERSEDES, question.entry, question.wanted)
        yield Item(identity, role, Kind.SUPERSEDES, question.at, text, (entry.title,), Told())


def _why(other: Seen, question: Question) -> str:
    if other.layer is None or other.layer in _GIVEN_BY_A_PERSON:
        return f"it is {other.layer.value if other.layer else 'of an unknown layer'}"
    return _BECAUSE.get(question.doubt, "it came later")


def suspicious(role: Role, glance: Glance) -> Iterator[Item]:
    """The entries that read like instructions to agents."""
    for entry in glance.suspicious:
        text = f"An entry reads like an instruction to agents ({entry.phrase}); read it, and reject it if it is one."
        identity = item_id(role, Kind.SPEAKS_TO_AGENTS, entry.id, entry.title, entry.says)
        yield Item(identity, role, Kind.SPEAKS_TO_AGENTS, glance.at, text, (entry.title,), Suspicious(entry.id))


def set_aside(role: Role, known: Remembered[Item]) -> Iterator[Item]:
    """The findings files in a role's quarantine; one that is the same as in `known` is not read again."""
    directory = role.path / layout.QUARANTINE
    try:
        names = os.listdir(directory)  # noqa: PTH208  mostly there is none, and paths cost more than the look
    except OSError:
        return
    if directory.is_symlink():
        return
    for path in sorted(directory / name for name in names if not name.startswith(".")):
        stamp = None if path.name == layout.REASONS else seen_stamp(path)
        if stamp is None:
            continue
        with suppress(OSError):  # gone since
            yield known.of(path, stamp, partial(_one, role, path, stamp))


def _one(role: Role, path: Path, stamp: Stamp) -> Item:
    # Slow to load, and quarantines are mostly empty.
    from echod.memory.document import parse  # noqa: PLC0415
    from echod.memory.model import Unreadable  # noqa: PLC0415

    data = read_plain(path, SIZE_LIMIT)
    name = before_set_aside(path.name)
    if layout.AGENT_FINDINGS.fullmatch(name) is None:
        problem: str | None = "its name is not that of a findings file"
    else:
        read = parse(data)
        problem = read.reason if isinstance(read, Unreadable) else None
    text = f"{path.name} was set aside in quarantine. " + ("It can be read now." if problem is None else problem)
    subject = SetAside(path.name, name, digest(data), problem)
    identity = item_id(role, Kind.QUARANTINED, path.name, subject.digest)
    return Item(identity, role, Kind.QUARANTINED, stamp[2] / 1e9, text, (), subject)
