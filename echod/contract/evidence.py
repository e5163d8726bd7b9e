"""The values that `echod verify` and the lists of offered entries print as JSON."""

from __future__ import annotations

from typing import NamedTuple

from echod.contract.status import SCHEMA, Timestamp


class EvidenceInfo(NamedTuple):
    """A citation of an entry, its state, and where the cited lines are now (null: nowhere, or unknown)."""

    cite: str
    state: str
    at: str | None = None


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
