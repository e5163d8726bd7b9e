"""Which entries the questions to a person are about, whatever becomes of the entries' ids.

The questions themselves are in the journal, and so is the id that an entry had when its question was asked. Here it is
kept up to date; a question of which nothing is known here is about the entry that has that id.

What a person answered to review items: an item that was answered is not shown again while it says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from echod.state.database import Database


class ReviewAnswer(StrEnum):
    """What a person said to an item."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"


class ReviewAnswers:
    """The answers for all stores. An item is named by its id, a store by its key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def answered_items(self, store: str) -> frozenset[str]:
        """The items of a store that were answered."""
        with self._database.read_transaction() as connection:
            rows = connection.execute("SELECT item FROM answered WHERE store = ?", (store,))
            return frozenset(row["item"] for row in rows)

    def is_rejected(self, item: str) -> bool:
        """Whether a person said no to an item."""
        with self._database.read_transaction() as connection:
            found = connection.execute(
                "SELECT 1 FROM answered WHERE item = ? AND answer = ?", (item, ReviewAnswer.REJECTED)
            )
            return found.fetchone() is not None

    def record(self, store: str, items: Iterable[str], answer: ReviewAnswer, at: float) -> None:
        """A person answered; the last answer counts."""
        with self._database.write_transaction() as connection:
            connection.executemany(
                "INSERT INTO answered (item, store, answer, at) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (item) DO UPDATE SET answer = excluded.answer, at = excluded.at",
                [(item, store, answer.value, at) for item in items],
            )


class QuestionKey(NamedTuple):
    """What a question names: the key of the finding that it comes from, and an entry by the id that it had then."""

    finding_key: str
    entry_id: str


class QuestionSubjects:
    """The entries that questions of all stores are about. A store is named by its key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, store: str, questions: Iterable[QuestionKey]) -> None:
        """Questions are asked now, so the entries have the ids that they are named by."""
        asked = [(store, key.finding_key, key.entry_id, key.entry_id) for key in questions]
        if not asked:
            return
        with self._database.write_transaction() as connection:
            connection.executemany(
                "INSERT INTO asked (store, finding, was, entry) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (store, finding, was) DO UPDATE SET entry = excluded.entry",
                asked,
            )

    def current_ids(self, store: str) -> Mapping[QuestionKey, str]:
        """The ids of the entries at the last look at their file."""
        with self._database.read_transaction() as connection:
            rows = connection.execute("SELECT finding, was, entry FROM asked WHERE store = ?", (store,))
            return {QuestionKey(row["finding"], row["was"]): str(row["entry"]) for row in rows}
