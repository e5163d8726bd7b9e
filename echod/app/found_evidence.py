"""Check the evidence of documents that a search found.

Apart from `search`, because a search that finds nothing with citations needs neither the repository nor the database.
"""

from __future__ import annotations

import re
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
from echod.state.fingerprints import FingerprintStore, StoredBases, read_bases

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
        self._bases: dict[tuple[str, str], StoredBases] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for verifier in self._verifiers.values():
            verifier.close()
        self._stack.close()

    def check(self, found: FoundDocument) -> tuple[CheckedCitation, ...]:
        """Return the states of a document's citations. All are unknown where they belong to no project."""
        if not found.citations:
            return ()
        if not found.project or found.kind is DocumentKind.ARCHIVE:
            return tuple(CheckedCitation(cite, EvidenceState.UNKNOWN) for cite in found.citations)
        verifier = self._verifiers.get(found.project)
        if verifier is None:
            verifier = self._verifiers[found.project] = EvidenceVerifier(Path(found.project), self._now)
        stored = (
            self._read_bases(found.store, found.role).get(found.id, {}) if found.kind is DocumentKind.MEMORY else {}
        )
        return verifier.check(found.citations, _day(found), stored).citations

    def _read_bases(self, store: str, role: str) -> StoredBases:
        if (store, role) not in self._bases:
            if not self._is_open:
                self._is_open = True
                try:
                    database = Database.open_readonly(self._paths.database)
                except StateError:
                    database = None  # the history of the project is enough for most entries
                if database is not None:
                    self._fingerprints = FingerprintStore(self._stack.enter_context(database))
            self._bases[store, role] = read_bases(self._fingerprints, store, role)
        return self._bases[store, role]


def _day(found: FoundDocument) -> date | None:
    days = [found.date, *_VERIFIED.findall(found.body)]
    try:
        return max((date.fromisoformat(day) for day in days if day), default=None)
    except ValueError:
        return None
