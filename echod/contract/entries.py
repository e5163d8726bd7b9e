"""The values that `brief`, `verify`, `explain`, `remembrance`, `import-access` and lists of offers print as JSON."""

from __future__ import annotations

from typing import NamedTuple

from echod.contract.codec import SCHEMA, Timestamp
from echod.contract.search import EvidenceInfo, FileProblem, SearchResult


class ChangedEvidence(NamedTuple):
    """A citation as `echod explain` lists it. `commit` changed the cited lines, at `committed`; null where unknown."""

    cite: str
    state: str
    at: str | None = None
    commit: str | None = None
    committed: Timestamp | None = None


class VerifiedEntry(NamedTuple):
    """An entry with its evidence."""

    id: str
    title: str
    evidence: tuple[EvidenceInfo, ...]
    store: str
    role: str


class VerifyReport(NamedTuple):
    """`echod verify`: the entries that cite files."""

    entries: tuple[VerifiedEntry, ...]
    schema: int = SCHEMA


class OfferedEntry(NamedTuple):
    """An entry that a hook showed to an agent: when, in which project and session, and why."""

    at: Timestamp
    id: str
    title: str
    project: str
    session: str
    event: str
    reason: str


class RecallLog(NamedTuple):
    """`echod log --recall`, newest first."""

    offers: tuple[OfferedEntry, ...]
    schema: int = SCHEMA


class ConflictInfo(NamedTuple):
    """Two entries that contradict each other, by id. The `first` one takes precedence."""

    first: str
    second: str
    difference: str


class MissingEvidence(NamedTuple):
    """An entry, by id, that cites a file which is not at that path."""

    id: str
    cite: str


class BriefReport(NamedTuple):
    """`echod brief`. `files` are the changed files of the worktree; `omitted` entries had no room."""

    query: str
    files: tuple[str, ...]
    always: tuple[SearchResult, ...]
    matching: tuple[SearchResult, ...]
    conflicts: tuple[ConflictInfo, ...]
    missing: tuple[MissingEvidence, ...]
    omitted: int
    notice: str | None = None
    schema: int = SCHEMA


class SolutionInfo(NamedTuple):
    """A solution in `docs/solutions/`.

    `state` is `current`, `stale`, `broken` or `superseded`, and `findings` are the reasons. A list does not look for
    solutions that their own symptom does not find, and `echod remembrance check` does.
    """

    project: str
    path: str
    title: str
    category: str
    tags: tuple[str, ...]
    date: str
    confidence: str
    verified_by: str
    state: str
    findings: tuple[str, ...] = ()


class RemembranceReport(NamedTuple):
    """`echod remembrance`: the solutions, the essays without front matter, and the files that cannot be read."""

    solutions: tuple[SolutionInfo, ...] = ()
    essays: tuple[str, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    schema: int = SCHEMA


class ImportedAccess(NamedTuple):
    """The days on which an entry was used, according to an imported log."""

    id: str
    store: str
    role: str
    title: str
    days: tuple[str, ...]


class AccessImportReport(NamedTuple):
    """`echod import-access`. `new` references were recorded; in a dry run none are.

    `unmatched` rows belong to no entry of today, and `undated` rows have no readable time.
    """

    files: tuple[str, ...]
    rows: int
    unmatched: int
    undated: int
    new: int
    entries: tuple[ImportedAccess, ...] = ()
    schema: int = SCHEMA
