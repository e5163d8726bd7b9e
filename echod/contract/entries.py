"""The values that commands about entries print as JSON: `brief`, `search`, `verify`, `explain`, `sync` and more."""

from __future__ import annotations

from typing import NamedTuple

from echod.contract.codec import SCHEMA, Timestamp


class EvidenceInfo(NamedTuple):
    """A citation of an entry, its state, and where the cited lines are now (null: nowhere, or unknown)."""

    cite: str
    state: str
    at: str | None = None


class SearchResult(NamedTuple):
    """A document that was found. `preview` is the part that fits the query best, in one line."""

    id: str
    kind: str
    scope: str
    project: str | None
    store: str
    role: str
    layer: str | None
    title: str
    date: str | None
    path: str
    line: int
    preview: str
    score: float
    suspicious: bool
    evidence: tuple[EvidenceInfo, ...] = ()


class FileProblem(NamedTuple):
    """A file or directory in which nothing can be found, and why."""

    path: str
    reason: str


class SearchReport(NamedTuple):
    """`echod search`. `total` counts all documents that match, on every page.

    `searched` has the directories that were searched. `stale` is true if documents that changed just now may be
    missing, and `notice` has the reason, or another remark.
    """

    query: str
    total: int
    stale: bool
    results: tuple[SearchResult, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    notice: str | None = None
    searched: tuple[str, ...] = ()
    schema: int = SCHEMA


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


class DrawnPeriod(NamedTuple):
    """Consecutive days. `lines` (layer: number) is None if unknown; so is `came` where the journal does not reach."""

    first: str
    last: str
    lines: dict[str, int] | None
    came: int | None
    left: int
    undone: int


class DrawnMovement(NamedTuple):
    """An entry that came or left. `cause` is a rule, a kind of job, `another program` or `not known`.

    `shortened`: a part of the entry may have stayed. `reversed`: the job was undone, or the file has the entry again.
    """

    date: str
    cause: str
    id: str | None
    title: str
    layer: str | None
    lines: int
    job: int | None
    shortened: bool
    reversed: bool


class DrawnUndo(NamedTuple):
    """A job that was undone, and the job that undid it."""

    date: str
    job: int | None
    kind: str
    undone_by: int
    summary: str


class DrawnRole(NamedTuple):
    """The picture of a role's memory file. `came_since` is the day from which on additions are known, if any."""

    store: str
    role: str
    limit: int | None
    came_since: str | None
    period_days: int
    periods: tuple[DrawnPeriod, ...]
    came: tuple[DrawnMovement, ...]
    left: tuple[DrawnMovement, ...]
    undone: tuple[DrawnUndo, ...]


class PictureReport(NamedTuple):
    """`echod picture`. `problems` are sentences about what could not be read."""

    roles: tuple[DrawnRole, ...] = ()
    problems: tuple[str, ...] = ()
    schema: int = SCHEMA


class RemoteInfo(NamedTuple):
    """The remote of a project's memory. `pending` are the files that differ from the last exchange."""

    url: str
    branch: str
    pending: tuple[str, ...] = ()


class SyncStatusReport(NamedTuple):
    """`echod sync status`. `driver` is what git does with a memory file that two clones changed (docs/sync.md)."""

    project: str
    driver: str
    remote: RemoteInfo | None = None
    schema: int = SCHEMA


class ResolvedFile(NamedTuple):
    """A memory file in conflict: its path below the project, `resolved`, `conflict` or `left`, and why."""

    path: str
    state: str
    detail: str


class ResolveReport(NamedTuple):
    """`echod sync resolve`."""

    project: str
    files: tuple[ResolvedFile, ...] = ()
    schema: int = SCHEMA
