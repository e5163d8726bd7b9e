"""What `echod explain` prints as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from echod.contract.status import SCHEMA


@dataclass(frozen=True, slots=True)
class TermsInfo:
    """What a score is made of, each 0..1."""

    importance: float
    relevance: float
    recency: float


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """A rule as it concerns an entry. `applies_on` (a date) is null for rules of pressure, which have a `rank`."""

    name: str
    applies: bool
    applies_on: str | None
    rank: int | None
    of: int | None
    text: str


@dataclass(frozen=True, slots=True)
class ExplainReport:
    """`echod explain ENTRY`; `pinned` is the last day of the pin, dates are local."""

    id: str
    title: str
    layer: str | None
    protected: bool
    pinned: str | None
    score: float | None
    terms: TermsInfo | None
    action: str
    verified: str
    idle_days: int
    references: int
    store: str
    role: str
    rules: tuple[RuleInfo, ...] = ()
    schema: int = SCHEMA
