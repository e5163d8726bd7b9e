"""Return the states of the citations of documents that a search found.

A state that was found before holds while the cited file is the same, and the base that it was compared with: the stored
fingerprint, or what the history has for this day. Then nothing is read, and what reads is not even loaded. Where other
files have a part in a state, because a cited file is gone or has another name, it is found each time.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from echod.clock import local_date
from echod.contract.entries import EvidenceInfo
from echod.errors import StateError
from echod.files import file_version
from echod.lazy import lazy_imports, lazy_pattern
from echod.paths import Paths
from echod.search.documents import DocumentKind
from echod.search.finder import DocumentFinder, FoundDocument, StoredState
from echod.state.database import Database
from echod.state.fingerprints import FingerprintStore
from echod.store.git import read_commit

with lazy_imports(__name__):
    from echod.evidence import verifier as verifier_module
    from echod.memory.solutions import promotion
    from echod.remembrance import library

if TYPE_CHECKING:
    from echod.evidence.verifier import CheckedCitation, EvidenceVerifier

_VERIFIED: Final = lazy_pattern(r"verified\W{1,6}(\d{4}-\d\d-\d\d)", re.IGNORECASE)
_UNKNOWN: Final = "unknown"
_CLOCK_TICK_NS: Final = 50_000_000
"""A file that was changed this recently may change again without a new time."""


class EvidenceReader:
    """Checks the citations of found documents. Opens what it needs when it is needed, and closes it at the end.

    At the end it stores the states in the index, for the next search.
    """

    def __init__(self, paths: Paths, now: float, finder: DocumentFinder) -> None:
        self._paths = paths
        self._now = now
        self._finder = finder
        self._stack = ExitStack()
        self._fingerprints: FingerprintStore | None = None
        self._is_open = False
        self._verifiers: dict[str, EvidenceVerifier] = {}
        self._histories: dict[Path, str | None] = {}
        self._found: list[tuple[int, StoredState]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for verifier in self._verifiers.values():
            verifier.close()
        self._stack.close()
        self._finder.store_states(self._found)

    def check(self, found: FoundDocument) -> tuple[EvidenceInfo, ...]:
        """Return the states of a document's citations. All are unknown where they belong to no project.

        The entry that a solution was made of is its first citation.
        """
        entry = _check_entry(found) if found.kind is DocumentKind.SOLUTION and found.source else ()
        return (*entry, *self._check_citations(found))

    def _check_citations(self, found: FoundDocument) -> tuple[EvidenceInfo, ...]:
        if not found.citations:
            return ()
        if not found.project or found.kind is DocumentKind.ARCHIVE:
            return tuple(EvidenceInfo(cite, _UNKNOWN) for cite in found.citations)
        bases = self._bases(found)
        states = {state.cite: state for state in found.states}
        if all(self._holds(states.get(cite), bases.get(cite)) for cite in found.citations):
            return tuple(EvidenceInfo(cite, states[cite].state, states[cite].at) for cite in found.citations)
        begin_ns = time.time_ns()
        checked = self._verify(found)
        self._found += [
            (found.row, state) for one in checked if (state := self._state(one, bases.get(one.cite), begin_ns))
        ]
        return tuple(EvidenceInfo(one.cite, one.state.value, one.at) for one in checked)

    def _verify(self, found: FoundDocument) -> tuple[CheckedCitation, ...]:
        verifier = self._verifiers.get(found.project)
        if verifier is None:
            verifier = self._verifiers[found.project] = verifier_module.EvidenceVerifier(Path(found.project), self._now)
        stored = {}
        if self._fingerprints is not None and found.kind is DocumentKind.MEMORY:
            fingerprints = self._fingerprints.read(found.store, found.role, found.id)
            stored = {cite: fingerprint for (_, cite), fingerprint in fingerprints.items()}
        return verifier.check(found.citations, _day(found), stored).citations

    # States that were found before

    def _bases(self, found: FoundDocument) -> Mapping[str, str]:
        """Return what identifies the stored fingerprints of a document's citations."""
        if found.kind is not DocumentKind.MEMORY:
            return {}
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
        return self._fingerprints.read_identities(found.store, found.role, found.id)

    def _holds(self, state: StoredState | None, base: str | None) -> bool:
        if state is None or state.basis != (base or self._history(Path(state.file).parent)):
            return False
        try:
            return file_version(Path(state.file).stat()) == state.version
        except OSError:
            return False

    def _state(self, checked: CheckedCitation, base: str | None, begin_ns: int) -> StoredState | None:
        """Return a state to store; None if it depends on more than its base and one file that was at rest."""
        if checked.file is None:
            return None
        basis = base or self._history(checked.file.parent)
        try:
            version = file_version(checked.file.stat())
        except OSError:
            return None
        if basis is None or begin_ns - version[3] <= _CLOCK_TICK_NS:
            return None
        return StoredState(checked.cite, checked.state.value, checked.at, basis, str(checked.file), version)

    def _history(self, directory: Path) -> str | None:
        """Return what identifies the history that a base is taken from: the commit that is checked out, and the day.

        None where that is not enough, as in a shallow clone, which may become a whole one.
        """
        if directory not in self._histories:
            self._histories[directory] = self._read_history(directory)
        return self._histories[directory]

    def _read_history(self, directory: Path) -> str | None:
        day = local_date(self._now).isoformat()
        for root in (directory, *directory.parents):
            git = root / ".git"
            if git.is_dir() and not (git / "shallow").exists():
                commit = read_commit(root)
                return f"{root} {commit} {day}" if commit else None
            if os.path.lexists(git):
                return None
        return day


def _check_entry(found: FoundDocument) -> tuple[EvidenceInfo, ...]:
    reference = promotion.parse_reference(found.source)
    if reference is None or not reference.is_complete:
        return ()
    cite = f"{reference.path}#{reference.entry_id}"
    return (EvidenceInfo(cite, library.find_entry_state(Path(found.project), reference).state.value),)


def _day(found: FoundDocument) -> date | None:
    days = [found.date, *_VERIFIED.findall(found.body)]
    try:
        return max((date.fromisoformat(day) for day in days if day), default=None)
    except ValueError:
        return None
