"""Everything that waits for a person in a store, less what was answered.

Looks only. Where single items come from is told in `review_sources`, what an answer does in `answering`.

Findings that wait for a person: their consolidation was undone, and the same is not done again unasked.

Where single review items come from: what agents asked for, what reads badly, what was set aside.
"""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from echod.clock import local_day
from echod.errors import EchodError
from echod.files import Remembered, Stamp, read_plain
from echod.inspection.counts import Counted, read_document
from echod.inspection.entries import Glance, Looks, Seen, entries_of, seen_stamp
from echod.inspection.review_items import (
    Claim,
    FirstPrune,
    GivenBack,
    Item,
    Kind,
    Replaced,
    SetAside,
    Suspicious,
    Told,
    first_prune_id,
    held_until,
    item_id,
    takes_most,
)
from echod.log import get_logger
from echod.memory.consolidation.supersede import Doubt
from echod.memory.model import SIZE_LIMIT, Layer
from echod.projects.maintenance import Care
from echod.state.entries import EntryLog
from echod.state.job import JobKind
from echod.state.review_answers import About
from echod.store import layout
from echod.store.journal.notices import CLAIM, Notes, Question
from echod.store.layout import Role, Store, before_set_aside
from echod.store.reader import Reader
from echod.store.snapshot import digest

log = get_logger(__name__)


class KeptBack(NamedTuple):
    """A findings file that was given back.

    Attributes:
        since: when it was given back (Unix seconds).
        digest: its content.
        by: the job that undid its consolidation; None where several did so in this role, or it is forgotten.
    """

    role: Role
    path: Path
    since: float
    digest: str
    by: int | None

    @property
    def reason(self) -> str:
        """Why it waits, in a sentence."""
        return f"{self.path.name} is not folded in again: a person took back what it gave."

    @property
    def remedy(self) -> str:
        """What a person can do about it."""
        project = shlex.quote(str(self.role.store.project))
        command = f"consolidate {project} --role {self.role.name}" if self.by is None else f"undo {self.by}"
        return f"Change or delete the file; or fold it in as it is with: echod {command}"


def kept_back(reader: Reader, notes: Notes) -> tuple[KeptBack, ...]:
    """The findings of a store that wait for a person, by role and name. `notes` are the store's. Writes nothing.

    A role that cannot be read now is left out; that it cannot is told elsewhere.
    """
    found: list[KeptBack] = []
    for role in notes.gave_back:
        try:
            found += _of_role(reader, role)
        except EchodError as error:
            log.info("role_not_readable_now", role=str(role.path), reason=str(error))
    return tuple(found)


def _of_role(reader: Reader, role: Role) -> list[KeptBack]:
    if not os.path.lexists(role.path):
        return []
    view = reader.peek(role)
    left = [findings for findings in view.findings if findings.digest in view.undone]
    if not left:
        return []
    done = [d for d in reader.history([role.store]) if d.role == role and d.kind == JobKind.UNDO]
    undos = {d.job for d in done if d.undone_by is None}
    by = undos.pop() if len(undos) == 1 else None
    return [
        KeptBack(role, role.path / findings.path.name, findings.mtime_ns / 1e9, findings.digest or "", by)
        for findings in left
    ]


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


_About = tuple[Question, str]
"""A question, and the id that the entry that it is about had at the last look at its file."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was seen in a store: its memory files, what agents asked for by role, what was set aside."""

    looks: Looks
    asked: Remembered[tuple[Item, ...]] = field(default_factory=Remembered)
    set_aside: Remembered[Item] = field(default_factory=Remembered)

    def forget_unasked(self) -> None:
        for remembered in (self.looks, self.asked, self.set_aside):
            remembered.forget_unasked()


class Review:
    """Gathers what waits; one for a process, since it remembers what it read."""

    def __init__(self, entries: EntryLog | None, counted: Counted) -> None:
        self._entries = entries
        self._seen: defaultdict[str, _Seen] = defaultdict(lambda: _Seen(Looks(counted)))

    def items(
        self, store: Store, roles: Sequence[Role], notes: Notes, care: Care, kept: Sequence[KeptBack], now: float
    ) -> tuple[Item, ...]:
        """What waits in a store, the oldest first. A role that cannot be read is told elsewhere.

        Args:
            store: the store.
            roles: its roles, as far as they can be listed.
            notes: what its journal has for a person.
            care: what may be done in its project.
            kept: its findings that an undo gave back.
            now: Unix seconds.
        """
        answered = frozenset[str]() if self._entries is None else self._entries.answers.of(store.key)
        seen = self._seen[store.key]
        items = self._all(store, seen, roles, notes, care, kept, now)
        found = {item.id: item for item in items if item.id not in answered}
        seen.forget_unasked()
        return tuple(sorted(found.values(), key=lambda item: (item.at, item.id)))

    def _all(
        self,
        store: Store,
        seen: _Seen,
        roles: Sequence[Role],
        notes: Notes,
        care: Care,
        kept: Sequence[KeptBack],
        now: float,
    ) -> Iterator[Item]:
        asked: defaultdict[str, list[Question]] = defaultdict(list)
        for question in notes.questions:
            asked[question.role].append(question)
        followed = {} if self._entries is None or not asked else self._entries.asked.of(store.key)
        for name, questions in asked.items():
            yield from self._asked(Role(store, name), _followed(questions, followed), seen.asked)
        held = {} if self._entries is None else self._entries.held(store.key)
        pins = self._entries is not None and bool(self._entries.pinned(store.key, local_day(now)))
        for role in roles:
            glance = seen.looks.at(role)
            yield from suspicious(role, glance)
            yield from self._too_long(role, seen.looks, glance, care, held.get(role.name), now, pins=pins)
            yield from set_aside(role, seen.set_aside)
        for one in kept:
            name = one.path.name
            identity = item_id(one.role, Kind.UNDONE, name, one.digest)
            yield Item(identity, one.role, Kind.UNDONE, one.since, one.reason, (), GivenBack(name, one.digest))
        for review in notes.reviews:
            role = Role(store, review.role)
            identity = item_id(role, review.kind, review.at, review.text)
            yield Item(identity, role, review.kind, review.at, review.text, review.titles, Told())

    def _asked(
        self, role: Role, questions: tuple[_About, ...], known: Remembered[tuple[Item, ...]]
    ) -> tuple[Item, ...]:
        """What agents asked for in a role. Whether it still matters stands in the memory file."""
        stamp = seen_stamp(role.memory)
        if stamp is None:
            return ()
        with suppress(OSError):  # told elsewhere
            return known.of(role, (stamp, questions), lambda: tuple(self._still_asked(role, questions)))
        return ()

    def _still_asked(self, role: Role, questions: Iterable[_About]) -> Iterator[Item]:
        document = read_document(role.memory)
        if document is None:
            return
        entries = entries_of(role, document)
        moves: Mapping[str, str] = {}
        if self._entries is not None:
            from echod.memory.entry_matching import present_in  # noqa: PLC0415  slow to load, and questions are rare

            moves = self._entries.moves(role.store.key, role.name, present_in(role.name, document))
        for question, identity in questions:
            entry = entries.get(moves.get(identity, identity))
            if entry is None:
                continue
            if question.kind == CLAIM:
                yield from claim(role, question, entry)
            else:
                yield from replacements(role, question, entry, entries)

    def _too_long(
        self, role: Role, looks: Looks, glance: Glance, care: Care, held_since: float | None, now: float, *, pins: bool
    ) -> Iterator[Item]:
        if care.opted_out(JobKind.PRUNE) is not None:
            return
        until = None if held_since is None else held_until(held_since, now)
        limit = care.policy.memory_line_limit
        # A plan costs more than all else that is looked at here, and in most files it is plain what it would say.
        if until is None and (glance.lines <= limit or (not pins and glance.staying <= limit)):
            return
        outlook = looks.outlook(role, self._entries, care.policy, local_day(now))
        if outlook is None:
            return
        if held_since is not None and until is not None and takes_most(outlook.lines_before, outlook.lines_after):
            text = (
                f"The first prune of this file would take more than half of it ({outlook.summary}), "
                f"so it waits until {datetime.fromtimestamp(until).astimezone():%Y-%m-%d %H:%M}."
            )
            yield Item(first_prune_id(role), role, Kind.FIRST_PRUNE, held_since, text, (), FirstPrune())
        over = outlook.over_limit
        if over is not None and not over.another_day_helps:
            identity = item_id(role, Kind.TOO_LONG, over.limit, over.protected, over.pinned, over.stuck)
            yield Item(identity, role, Kind.TOO_LONG, glance.at, f"It stays too long: {over.sentence}", (), Told())


def _followed(questions: Iterable[Question], ids: Mapping[About, str]) -> tuple[_About, ...]:
    """The questions, each with its entry's id of the last look; the id that it had then where none is known."""
    return tuple((one, ids.get(About(one.key, one.entry), one.entry)) for one in questions)
