"""The policy of consolidation: what becomes of a role's findings, decided on values.

Each finding is new and gets an entry at the end of the memory file, or it says what an entry says already and only
refreshes that one, or it was consumed before. One that says what it replaces takes the place of that entry, where there
is no doubt which. A findings file that cannot be understood is set aside with the reason; a memory file that cannot be
understood stops it all.

Read in this order: `similarity` (what is the same learning), `reception` (new, or found again), `superseding` (what
gives way), this module, `consolidation` (what comes out).

What the policy of consolidation decides, as values. How it decides is told in `consolidate`.

Puts together what was received: the memory file as it will be, and what each entry is called then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import NamedTuple

from echod.memory.compose import ComposeError, compose_entry, form_for, newline_of, with_entries
from echod.memory.consolidation.deduplicate import Reception
from echod.memory.consolidation.intake import FindingsFile, Rejected, Taken, take_in
from echod.memory.consolidation.supersede import Doubt, Doubtful, Going, decide
from echod.memory.document import new_memory_file, parse, parse_block
from echod.memory.findings import Finding
from echod.memory.identity import entry_ids
from echod.memory.merge import reads_as_written
from echod.memory.model import Block, Document, Layer, Unreadable
from echod.memory.policy.archive import ArchivedEntry, archived_entry
from echod.memory.policy_model import Rule


class TakenUp(NamedTuple):
    """A finding, and the id of the entry that holds it; `claimed` is the layer it asked for and only a person may give.

    It became that entry, or, as a duplicate, counts as one reference to it.
    """

    key: str
    id: str
    title: str
    claimed: Layer | None


class Superseded(NamedTuple):
    """An entry that gave way to a finding which says that it replaces it.

    Attributes:
        key: the finding.
        by: the id of the entry that holds what the finding says.
        title: the title of the entry that gave way.
        archived: that entry, as the archive keeps it.
        own_key: the finding that it was itself, where it was new too and never stood in the file.
    """

    key: str
    by: str
    title: str
    archived: ArchivedEntry
    own_key: str | None


class Undecided(NamedTuple):
    """A finding says that it replaces a title, but a person has to say what gives way.

    Attributes:
        key: the finding.
        id: the id of the entry that holds what it says.
        target: the title that it names, normalised.
        doubt: why nothing gave way.
    """

    key: str
    id: str
    target: str
    doubt: Doubt


class Consumed(NamedTuple):
    """A findings file that is done with: its name, the keys of all its findings, its text without secrets."""

    name: str
    keys: tuple[str, ...]
    kept: bytes


class Begun(NamedTuple):
    """A findings file of which a part was taken up, since it holds more than that: its name, the keys of the part."""

    name: str
    keys: tuple[str, ...]


class Quarantined(NamedTuple):
    """A findings file to set aside: its name, the reason in a sentence, its bytes without secrets."""

    name: str
    reason: str
    kept: bytes


class Consolidation(NamedTuple):
    """What the policy decided.

    Attributes:
        memory: the new bytes of the memory file; None if they are the old ones.
        added: one for each new entry, in the order in which they stand.
        duplicates: one for each finding that is in the memory already, or twice in the findings.
        superseded: one for each entry that gives way to a finding, in the order in which they stood.
        undecided: one for each finding that says what it replaces where a person has to decide that.
        known: keys of findings that were consumed before and are passed over.
        consumed: every findings file that is done with, in name order.
        begun: the one that holds more than may be taken up at once, if any.
        quarantined: every findings file that cannot be understood.
        renumbered: old id -> new id of the entries that stay under another id, because a repeat of theirs gave way.
    """

    memory: bytes | None
    added: tuple[TakenUp, ...]
    duplicates: tuple[TakenUp, ...]
    superseded: tuple[Superseded, ...]
    undecided: tuple[Undecided, ...]
    known: tuple[str, ...]
    consumed: tuple[Consumed, ...]
    begun: tuple[Begun, ...]
    quarantined: tuple[Quarantined, ...]
    renumbered: Mapping[str, str]

    @property
    def claims(self) -> tuple[tuple[TakenUp, Layer], ...]:
        """The findings that claim a layer that only a person gives, each with that layer."""
        return tuple((one, one.claimed) for one in (*self.added, *self.duplicates) if one.claimed is not None)

    @property
    def summary(self) -> str:
        """All of it in one line."""
        known, aside = len(self.duplicates) + len(self.known), len(self.quarantined)
        asked = len(self.undecided) + len(self.claims)
        parts = [
            f"{count} {what}"
            for count, what in (
                (len(self.added), "added"),
                (len(self.superseded), "superseded"),
                (known, "already known"),
                (aside, "file set aside" if aside == 1 else "files set aside"),
                (asked, "for you to review"),
            )
            if count
        ]
        parts += [f"the rest of {file.name} follows" for file in self.begun]
        return ", ".join(parts) or "nothing new"


class Folded(NamedTuple):
    """The outcome, by place as in `Reception`.

    Attributes:
        after: the file as it will be.
        ids: the id of each entry, then; of one that gave way, the one it had.
        gone: the blocks of what gave way, as they stood, or would have stood.
        renumbered: old id -> new id of entries that stay under another one.
    """

    after: Document
    ids: Mapping[int, str]
    gone: Mapping[int, Block]
    renumbered: Mapping[str, str]


def without(document: Document, reception: Reception, going: Collection[int]) -> Document:
    """The old file with what was found again refreshed, and without what gives way."""
    blocks = tuple(block for place, block in enumerate(reception.blocks) if place not in going)
    return replace(document, blocks=blocks)


def fold(role: str, document: Document, reception: Reception, going: Collection[int]) -> Folded | Unreadable:
    """The file with all new findings that did not give way themselves.

    `Unreadable` is returned where the file would grow too large to be read again.

    Args:
        role: the role's name; part of the entries' ids.
        document: the file as it was.
        reception: what was received for it.
        going: the places of what gives way.

    Raises:
        ComposeError: the file cannot take one of the findings.
    """
    old = range(len(document.blocks))
    new = range(len(old), len(old) + len(reception.new))
    coming = [place for place in new if place not in going]
    rest = without(document, reception, going)
    after = with_entries(rest, [reception.new[place - len(old)] for place in coming])
    if isinstance(after, Unreadable):
        return after
    form, newline = form_for(rest), newline_of(rest)
    # What gave way is kept as it stood, not as it would have been refreshed.
    gone = {place: document.blocks[place] for place in old if place in going}
    never_stood = {
        place: parse_block(compose_entry(reception.new[place - len(old)], form, newline))
        for place in new
        if place in going
    }
    before = _named(old, entry_ids(role, document))
    places = [*(place for place in old if place not in going), *coming, *never_stood]
    ids = _named(places, entry_ids(role, replace(after, blocks=(*after.blocks, *never_stood.values()))))
    return Folded(
        after=after,
        ids={**before, **ids},
        gone={**gone, **never_stood},
        renumbered={
            identity: ids[place] for place, identity in before.items() if place in ids and ids[place] != identity
        },
    )


def _named(places: Collection[int], ids: Collection[str | None]) -> dict[int, str]:
    return {place: identity for place, identity in zip(places, ids, strict=True) if identity is not None}


__all__ = ["Consolidation", "FindingsFile", "consolidate"]

Reader = Callable[[FindingsFile, date], Taken | Rejected]


def consolidate(
    role: str,
    memory: bytes | None,
    batches: Iterable[FindingsFile],
    today: date,
    *,
    known_keys: Container[str] = frozenset(),
    pinned: Container[str] = frozenset(),
    most: int | None = None,
    read: Reader = take_in,
) -> Consolidation | Unreadable:
    """Decide what becomes of these findings. The order of `batches` makes no difference.

    Where they would change more than `most` entries, the files that come last in name order wait, and so does the rest
    of the one in which the number is reached.

    Args:
        role: the role's name; part of the entries' ids.
        memory: the memory file's bytes; None if there is none.
        batches: the findings files that are ready.
        today: the local day; nothing counts as verified later than it.
        known_keys: the ledger: findings consumed before, which a stale copy of their file must not add again.
        pinned: ids of entries that no rule touches; none gives way to a finding.
        most: how many entries are added or refreshed; None for all that there are.
        read: `take_in`, or what remembers its answers.
    """
    document = parse(new_memory_file(role) if memory is None else memory)
    if isinstance(document, Unreadable):
        return document
    received = [read(file, today) for file in sorted(batches, key=lambda file: (file.name, file.data))]
    taken = [_Portion(file, file.findings, all_of_it=True) for file in received if isinstance(file, Taken)]
    rejected = [file for file in received if isinstance(file, Rejected)]
    terms = _Terms(role, memory, today, known_keys, pinned, most)
    reception = Reception(document, today)
    portions, known = _received(reception, taken, terms)
    try:
        return _decided(document, reception, portions, known, rejected, terms)
    except ComposeError:
        writable, refused = _sifted(document, portions)
        reception = Reception(document, today)
        portions, known = _received(reception, writable, terms)
        return _decided(document, reception, portions, known, [*rejected, *refused], terms)


class _Terms(NamedTuple):
    role: str
    memory: bytes | None
    today: date
    known_keys: Container[str]
    pinned: Container[str]
    most: int | None


@dataclass(frozen=True, slots=True)
class _Portion:
    """What is taken up of a file now: some of its findings; `all_of_it`: there is nothing more in it."""

    file: Taken
    findings: Sequence[Finding]
    all_of_it: bool

    def keys(self, known: Container[str]) -> tuple[str, ...]:
        """What is to be remembered as consumed. The parts that were taken up before are known, and may be very many."""
        parts = self.file.file.begun or not self.all_of_it
        return tuple(finding.key for finding in self.findings if not parts or finding.key not in known)


def _received(reception: Reception, taken: Iterable[_Portion], terms: _Terms) -> tuple[list[_Portion], list[str]]:
    """Take findings in until they are as many as may be; what of the files that was, and what was known."""
    portions: list[_Portion] = []
    known: list[str] = []
    for portion in taken:
        for at, finding in enumerate(portion.findings):
            if finding.key in terms.known_keys:
                if not portion.file.file.begun:
                    known.append(finding.key)
            elif terms.most is not None and reception.changed >= terms.most:
                if at:
                    portions.append(replace(portion, findings=portion.findings[:at], all_of_it=False))
                return portions, known
            else:
                reception.receive(finding)
        portions.append(portion)
    return portions, known


def _decided(
    document: Document,
    reception: Reception,
    taken: Sequence[_Portion],
    known: Sequence[str],
    rejected: Sequence[Rejected],
    terms: _Terms,
) -> Consolidation | Unreadable:
    going, doubtful = _giving_way(document, reception, terms)
    folded = fold(terms.role, document, reception, going.keys())
    if isinstance(folded, Unreadable):
        return folded
    ids, data = folded.ids, folded.after.render()
    new = enumerate(reception.new, start=len(document.blocks))
    return Consolidation(
        memory=None if data == terms.memory or not (reception.new or terms.memory) else data,
        added=tuple(
            TakenUp(finding.key, ids[place], finding.title, finding.claimed)
            for place, finding in new
            if place not in going
        ),
        duplicates=tuple(
            TakenUp(finding.key, ids[place], finding.title, finding.claimed) for finding, place in reception.duplicates
        ),
        superseded=tuple(_superseded(going[place], folded, reception, terms) for place in sorted(going)),
        undecided=tuple(
            Undecided(one.replacement.finding.key, ids[one.replacement.place], one.replacement.target, one.doubt)
            for one in doubtful
        ),
        known=tuple(known),
        consumed=tuple(
            Consumed(whole.file.file.name, whole.keys(terms.known_keys), whole.file.kept)
            for whole in taken
            if whole.all_of_it
        ),
        begun=tuple(Begun(part.file.file.name, part.keys(terms.known_keys)) for part in taken if not part.all_of_it),
        quarantined=tuple(Quarantined(file.file.name, file.reason, file.kept) for file in rejected),
        renumbered=folded.renumbered,
    )


def _giving_way(
    document: Document, reception: Reception, terms: _Terms
) -> tuple[Mapping[int, Going], Sequence[Doubtful]]:
    """What gives way, by place, and what a person decides."""
    if not reception.replacements:
        return {}, ()
    ids = entry_ids(terms.role, document)
    found, doubtful = decide(reception, terms.today, lambda place: ids[place] in terms.pinned)
    going = {one.place: one for one in found}
    if going and not reads_as_written(without(document, reception, going)):
        # Only the heading of what would go ends a code block or comment above it.
        return {}, [*doubtful, *(Doubtful(one.replacement, Doubt.STUCK) for one in found)]
    return going, doubtful


def _superseded(going: Going, folded: Folded, reception: Reception, terms: _Terms) -> Superseded:
    place, number = going.place, going.place - len(reception.blocks)
    block = folded.gone[place]
    return Superseded(
        key=going.replacement.finding.key,
        by=folded.ids[going.replacement.place],
        title=block.entry.title if block.entry else "",
        archived=archived_entry(block, folded.ids[place], terms.role, Rule.SUPERSEDED, terms.today),
        own_key=reception.new[number].key if number >= 0 else None,
    )


def _sifted(document: Document, taken: Sequence[_Portion]) -> tuple[list[_Portion], list[Rejected]]:
    """The files whose findings can be written, and the others with the reason."""
    writable: list[_Portion] = []
    refused: list[Rejected] = []
    for file in taken:
        try:
            after = with_entries(document, file.findings)
        except ComposeError as error:
            refused.append(Rejected(file.file.file, str(error), file.file.kept))
            continue
        writable.append(file)
        document = document if isinstance(after, Unreadable) else after
    return writable, refused
