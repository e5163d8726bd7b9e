"""What a person answered to review items: an item that was answered is not shown again while it says the same."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from echod.state.database import Database


class Answer(StrEnum):
    """What a person said to an item."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"


class AnswerLog:
    """The answers for all stores. An item is named by its id, a store by its key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, store: str) -> frozenset[str]:
        """The items of a store that were answered."""
        with self._database.reading() as link:
            rows = link.execute("SELECT item FROM answered WHERE store = ?", (store,))
            return frozenset(row["item"] for row in rows)

    def rejected(self, item: str) -> bool:
        """Whether a person said no to an item."""
        with self._database.reading() as link:
            found = link.execute("SELECT 1 FROM answered WHERE item = ? AND answer = ?", (item, Answer.REJECTED))
            return found.fetchone() is not None

    def note(self, store: str, items: Iterable[str], answer: Answer, at: float) -> None:
        """A person answered; the last answer counts."""
        with self._database.writing() as link:
            link.executemany(
                "INSERT INTO answered (item, store, answer, at) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (item) DO UPDATE SET answer = excluded.answer, at = excluded.at",
                [(item, store, answer.value, at) for item in items],
            )
