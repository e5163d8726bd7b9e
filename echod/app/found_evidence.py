"""Check the evidence of documents that a search found.

Apart from `search`, because a search that finds nothing with citations needs neither the repository nor the database.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Final, Self

from echod.errors import StateError
from echod.evidence.verifier import CheckedCitation, EvidenceVerifier
from echod.memory.evidence.compare import EvidenceState
from echod.paths import Paths
from echod.search.documents import DocumentKind
from echod.search.finder import FoundDocument
from echod.state.database import Database
from echod.state.fingerprints import FingerprintStore, StoredFingerprint

_VERIFIED: Final = re.compile(r"verified\W{1,6}(\d{4}-\d\d-\d\d)", re.IGNORECASE)


class EvidenceReader:
    """Checks the citations of found documents. Opens what it needs when it is needed, and closes it at the end."""

    def __init__(self, paths: Paths, now: float) -> None:
        self._paths = paths
        self._now = now
        self._stack = ExitStack()
        self._fingerprints: FingerprintStore | None = None
        self._is_open = False
        self._verifiers: dict[str, EvidenceVerifier] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for verifier in self._verifiers.values():
            verifier.close()
        self._stack.close()

    def check(self, found: FoundDocument) -> tuple[CheckedCitation, ...]:
        """Return the states of a document's citations. All are unknown where they belong to no project.

        The entry that a solution was made of is its first citation.
        """
        entry = _check_entry(found) if found.kind is DocumentKind.SOLUTION and found.source else ()
        return (*entry, *self._check_citations(found))

    def _check_citations(self, found: FoundDocument) -> tuple[CheckedCitation, ...]:
        if not found.citations:
            return ()
        if not found.project or found.kind is DocumentKind.ARCHIVE:
            return tuple(CheckedCitation(cite, EvidenceState.UNKNOWN) for cite in found.citations)
        verifier = self._verifiers.get(found.project)
        if verifier is None:
            verifier = self._verifiers[found.project] = EvidenceVerifier(Path(found.project), self._now)
        stored = self._read_bases(found) if found.kind is DocumentKind.MEMORY else {}
        return verifier.check(found.citations, _day(found), stored).citations

    def _read_bases(self, found: FoundDocument) -> Mapping[str, StoredFingerprint]:
        if not self._is_open:
            self._is_open = True
            try:
                database = Database.open_readonly(self._paths.database)
            except StateError:
                database = None  # the history of the project is enough for most entries
            if database is not None:
                self._fingerprints = FingerprintStore(self._stack.enter_context(database))
        if self._fingerprints is None:
            return {}
        stored = self._fingerprints.read(found.store, found.role, found.id)
        return {cite: fingerprint for (_, cite), fingerprint in stored.items()}


def _check_entry(found: FoundDocument) -> tuple[CheckedCitation, ...]:
    from echod.memory.solutions.promotion import parse_reference  # noqa: PLC0415  loads what most searches do without
    from echod.remembrance.library import find_entry_state  # noqa: PLC0415  as above

    reference = parse_reference(found.source)
    if reference is None or not reference.is_complete:
        return ()
    cite = f"{reference.path}#{reference.entry_id}"
    return (CheckedCitation(cite, find_entry_state(Path(found.project), reference).state),)


def _day(found: FoundDocument) -> date | None:
    days = [found.date, *_VERIFIED.findall(found.body)]
    try:
        return max((date.fromisoformat(day) for day in days if day), default=None)
    except ValueError:
        return None
