"""The policy of consolidation: what becomes of a role's findings, decided on values.

Each finding is new and gets an entry at the end of the memory file, or it is an exact duplicate of an entry and only
refreshes it (verified: the later day, confidence: the higher one, the text stays), or it was consumed before. An
entry that is etched, a note, or of an unknown layer is not even refreshed: only a person changes those. A findings
file that cannot be understood is set aside with the reason; a memory file that cannot be understood stops it all.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from echod.memory.compose import ComposeError, new_memory_file, tidied, with_entries
from echod.memory.document import Block, Document, Entry, Layer, Unreadable, parse
from echod.memory.edit import with_confidence, with_verified
from echod.memory.findings import DEFAULT_CONFIDENCE, Finding
from echod.memory.identity import entry_ids
from echod.memory.intake import FindingsFile, Rejected, Taken, take_in
from echod.memory.similarity import Learning, exact_form, learning_of

__all__ = ["Added", "Begun", "Consolidation", "Consumed", "Duplicate", "FindingsFile", "Quarantined", "consolidate"]

REFRESHED_LAYERS = frozenset({Layer.INSCRIBED, Layer.OBSERVATIONS, Layer.TRACED})


@dataclass(frozen=True, slots=True)
class Added:
    """A finding that became an entry; `claimed` is the layer it asked for and only a person may give."""

    key: str
    id: str
    title: str
    claimed: Layer | None


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A finding that an entry (`id`) holds already; it counts as one reference to that entry."""

    key: str
    id: str
    claimed: Layer | None


@dataclass(frozen=True, slots=True)
class Consumed:
    """A findings file that is done with: its name, the keys of all its findings, its text without secrets."""

    name: str
    keys: tuple[str, ...]
    kept: bytes


@dataclass(frozen=True, slots=True)
class Begun:
    """A findings file of which a part was taken up, since it holds more than that: its name, the keys of the part."""

    name: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A findings file to set aside: its name, the reason in a sentence, its bytes without secrets."""

    name: str
    reason: str
    kept: bytes


@dataclass(frozen=True, slots=True)
class Consolidation:
    """What the policy decided.

    Attributes:
        memory: the new bytes of the memory file; None if they are the old ones.
        added: one for each new entry, in the order in which they stand.
        duplicates: one for each finding that is in the memory already, or twice in the findings.
        known: keys of findings that were consumed before and are passed over.
        consumed: every findings file that is done with, in name order.
        begun: the one that holds more than may be taken up at once, if any.
        quarantined: every findings file that cannot be understood.
        summary: all of it in one line.
    """

    memory: bytes | None
    added: tuple[Added, ...]
    duplicates: tuple[Duplicate, ...]
    known: tuple[str, ...]
    consumed: tuple[Consumed, ...]
    begun: tuple[Begun, ...]
    quarantined: tuple[Quarantined, ...]
    summary: str


Reader = Callable[[FindingsFile, date], Taken | Rejected]


def consolidate(
    role: str,
    memory: bytes | None,
    batches: Iterable[FindingsFile],
    today: date,
    *,
    known_keys: Container[str] = frozenset(),
    most: int | None = None,
    read: Reader = take_in,
) -> Consolidation | Unreadable:
    """Decide what becomes of these findings. The order of `batches` makes no difference.

    Where they are more than `most` new ones, the files that come last in name order wait, and so does the rest of the
    one in which the number is reached.

    Args:
        role: the role's name; part of the entries' ids.
        memory: the memory file's bytes; None if there is none.
        batches: the findings files that are ready.
        today: the local day; nothing counts as verified later than it.
        known_keys: the ledger: findings consumed before, which a stale copy of their file must not add again.
        most: how many new findings are taken up; None for all.
        read: `take_in`, or what remembers its answers.
    """
    document = parse(new_memory_file(role) if memory is None else memory)
    if isinstance(document, Unreadable):
        return document
    received = [read(file, today) for file in sorted(batches, key=lambda file: (file.name, file.data))]
    taken = _portion([file for file in received if isinstance(file, Taken)], known_keys, most)
    rejected = [file for file in received if isinstance(file, Rejected)]
    terms = _Terms(role, memory, today, known_keys)
    try:
        return _decide(document, taken, rejected, terms)
    except ComposeError:
        writable, refused = _sifted(document, taken)
        return _decide(document, writable, [*rejected, *refused], terms)


@dataclass(frozen=True, slots=True)
class _Terms:
    role: str
    memory: bytes | None
    today: date
    known_keys: Container[str]


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


def _portion(taken: Iterable[Taken], known_keys: Container[str], most: int | None) -> list[_Portion]:
    """The files, and the beginning of one, that hold no more than `most` findings that are not known."""
    chosen: list[_Portion] = []
    room = most
    for file in taken:
        if room is None:
            chosen.append(_Portion(file, file.findings, all_of_it=True))
            continue
        new = [at for at, finding in enumerate(file.findings) if finding.key not in known_keys]
        if len(new) <= room:
            chosen.append(_Portion(file, file.findings, all_of_it=True))
            room -= len(new)
        else:
            if room:
                chosen.append(_Portion(file, file.findings[: new[room]], all_of_it=False))
            break
    return chosen


def _decide(
    document: Document, taken: Sequence[_Portion], rejected: Sequence[Rejected], terms: _Terms
) -> Consolidation | Unreadable:
    desk = _Desk(document, terms.today)
    known: list[str] = []
    for portion in taken:
        for finding in portion.findings:
            if finding.key not in terms.known_keys:
                desk.receive(finding)
            elif not portion.file.file.begun:
                known.append(finding.key)
    begun = tuple(Begun(part.file.file.name, part.keys(terms.known_keys)) for part in taken if not part.all_of_it)
    after = with_entries(Document(document.preamble, tuple(desk.blocks)), desk.new)
    if isinstance(after, Unreadable):
        return after
    ids = entry_ids(terms.role, after)
    first_new = len(document.blocks)
    data = after.render()
    return Consolidation(
        memory=None if data == terms.memory or not (desk.new or terms.memory) else data,
        added=tuple(
            Added(finding.key, ids[first_new + number] or "", finding.title, finding.claimed)
            for number, finding in enumerate(desk.new)
        ),
        duplicates=tuple(Duplicate(finding.key, ids[at] or "", finding.claimed) for finding, at in desk.duplicates),
        known=tuple(known),
        consumed=tuple(
            Consumed(whole.file.file.name, whole.keys(terms.known_keys), whole.file.kept)
            for whole in taken
            if whole.all_of_it
        ),
        begun=begun,
        quarantined=tuple(Quarantined(file.file.name, file.reason, file.kept) for file in rejected),
        summary=_summary(len(desk.new), len(desk.duplicates) + len(known), len(rejected), begun),
    )


class _Desk:
    """Where findings are laid beside the memory: what is in it, what is new, what was there already."""

    def __init__(self, document: Document, today: date) -> None:
        self.blocks = list(document.blocks)
        self.new: list[Finding] = []
        self.duplicates: list[tuple[Finding, int]] = []
        self._today = today
        self._places: dict[tuple[str, str, str], int] = {}
        for place, block in enumerate(self.blocks):
            if block.entry:
                self._places.setdefault(exact_form(learning_of(block, block.entry)), place)

    def receive(self, finding: Finding) -> None:
        """Take a finding: as a new entry, or as a duplicate of the entry or new finding that says the same."""
        next_place = len(self.blocks) + len(self.new)
        place = self._places.setdefault(exact_form(_learning(finding)), next_place)
        if place == next_place:
            self.new.append(finding)
            return
        self.duplicates.append((finding, place))
        if place < len(self.blocks):
            self.blocks[place] = refreshed(self.blocks[place], finding, self._today)
        else:
            first = self.new[place - len(self.blocks)]
            self.new[place - len(self.blocks)] = replace(
                first,
                verified=max(first.verified, finding.verified),
                confidence=max(first.confidence, finding.confidence),
            )


def refreshed(block: Block, finding: Finding, today: date) -> Block:
    """The block of an entry that was found again: the later date, the higher confidence, nothing else."""
    entry = block.entry
    if entry is None or entry.layer not in REFRESHED_LAYERS:
        return block
    seen = _last_seen(entry, today)
    verified = min(finding.verified, today)
    if seen is None or verified > seen:
        block = with_verified(block, verified)
    held = DEFAULT_CONFIDENCE if entry.confidence is None else entry.confidence
    return with_confidence(block, finding.confidence) if finding.confidence > held else block


def _last_seen(entry: Entry, today: date) -> date | None:
    # A date in the future is a mistake, and counts as none.
    days = (day for day in (entry.verified, entry.heading_date) if day and day <= today + timedelta(days=1))
    return next(days, None)


def _learning(finding: Finding) -> Learning:
    tidy = tidied(finding)
    title = f"{tidy.kind}: {tidy.title}" if tidy.kind else tidy.title
    return Learning(title, tidy.text, tidy.evidence, tidy.layer)


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


def _summary(added: int, known: int, quarantined: int, begun: Sequence[Begun]) -> str:
    parts = []
    if added:
        parts.append(f"{added} added")
    if known:
        parts.append(f"{known} already known")
    if quarantined:
        parts.append(f"{quarantined} {'file' if quarantined == 1 else 'files'} set aside")
    parts += [f"the rest of {file.name} follows" for file in begun]
    return ", ".join(parts) or "nothing new"
