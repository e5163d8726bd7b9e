"""The values that `search` prints as JSON. Apart from `entries`, because every class costs a search its time."""

from __future__ import annotations

from typing import NamedTuple

from echod.contract.codec import SCHEMA


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
