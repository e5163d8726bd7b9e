"""The known contents of a memory file as documents: what lineage compares with."""

from __future__ import annotations

from dataclasses import dataclass

from echod.memory.lineage import Known
from echod.memory.model import Document
from echod.store.commit.context import Desk
from echod.store.journal.journal import KnownState

_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A known state with its document."""

    known: Known
    document: Document
    head: str | None


def known_documents(desk: Desk) -> tuple[KnownDocument, ...]:
    """Known states young enough to matter, oldest first; those whose content was lost are left out."""
    oldest = desk.clock() - desk.limits.history_hours * _HOUR
    states = desk.journal.states()
    young = (*(s for s in states[:-1] if s.since >= oldest), *states[-1:])
    return tuple(known for state in young if (known := known_document(desk, state)) is not None)


def known_document(desk: Desk, state: KnownState) -> KnownDocument | None:
    """A known state with its document; None where its content was lost."""
    document = desk.readings.document(desk.journal, state.image)
    if document is None:
        return None
    seen = desk.readings.shape(state.image, document)
    return KnownDocument(Known(state.image, state.since, seen), document, state.head)
