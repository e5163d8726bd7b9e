"""What `echod review` prints as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from echod.contract.status import SCHEMA


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A row of `echod review`: what it is, the headings it is about, and what each answer to it would change."""

    id: str
    store: str
    role: str
    kind: str
    at: float
    text: str
    titles: tuple[str, ...]
    accept: str
    reject: str


@dataclass(frozen=True, slots=True)
class ReviewReport:
    """`echod review`."""

    items: tuple[ReviewItem, ...] = ()
    schema: int = SCHEMA
