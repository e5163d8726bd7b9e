"""Everything that waits for a person in a store, less what was answered.

Looks only. Where single items come from is told in `review_sources`, what an answer does in `answering`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from echod.clock import local_day
from echod.files import Remembered
from echod.inspection.counts import Counted
from echod.inspection.entries import Glance, Looks, entries_of, seen_stamp
from echod.inspection.review_items import FirstPrune, GivenBack, Item, Kind, Told, first_prune_id, item_id
from echod.jobs.documents import read_document
from echod.jobs.first_prune import held_until, takes_most
from echod.jobs.kept_back import KeptBack
from echod.jobs.review_sources import claim, replacements, set_aside, suspicious
from echod.projects.maintenance import Care
from echod.state.entries import EntryLog
from echod.state.job import JobKind
from echod.state.review_answers import About
from echod.store.journal.notices import CLAIM, Notes, Question
from echod.store.layout import Role, Store

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
            from echod.memory.presence import present_in  # noqa: PLC0415  slow to load, and questions are rare

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
