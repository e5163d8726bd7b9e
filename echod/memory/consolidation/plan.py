"""The policy of consolidation: what becomes of a role's findings, decided on values.

Each finding is new and gets an entry at the end of the memory file, or it says what an entry says already and only
refreshes that one, or it was consumed before. One that says what it replaces takes the place of that entry, where there
is no doubt which. A findings file that cannot be understood is set aside with the reason; a memory file that cannot be
understood stops it all.

Read in this order: `similarity` (what is the same learning), `reception` (new, or found again), `superseding` (what
gives way), this module, `consolidation` (what comes out).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from echod.memory.compose import ComposeError, with_entries
from echod.memory.consolidation.deduplicate import Reception
from echod.memory.consolidation.intake import FindingsFile, Rejected, Taken, take_in
from echod.memory.consolidation.results import (
    Begun,
    Consolidation,
    Consumed,
    Quarantined,
    Superseded,
    TakenUp,
    Undecided,
)
from echod.memory.consolidation.supersede import Doubtful, Going, decide
from echod.memory.document import parse
from echod.memory.doubt import Doubt
from echod.memory.findings import Finding
from echod.memory.folding import Folded, fold, without
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Unreadable
from echod.memory.new_file import new_memory_file
from echod.memory.policy.archive import archived_entry
from echod.memory.policy.rereading import reads_as_written
from echod.memory.policy.rules import Rule

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


@dataclass(frozen=True, slots=True)
class _Terms:
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
