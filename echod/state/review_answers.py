"""Store the user's answers to review items, and the entries that open questions are about.

Both are decisions or belong to one, so they are also kept outside of the database (`echod.state.decisions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from echod.state.database import Database
from echod.state.decisions import save_decisions


class ReviewAnswer(StrEnum):
    """The user's answer to an item. A dismissed one is hidden, and nothing else happens."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    DISMISSED = "dismissed"


class ReviewAnswers:
    """The answers for all stores. An item is identified by its id. It is hidden until its content changes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def answered_items(self, store: str) -> frozenset[str]:
        """Return the answered items of a store."""
        with self._database.read_transaction() as connection:
            rows = connection.execute("SELECT item_id FROM review_answer WHERE store = ?", (store,))
            return frozenset(row["item_id"] for row in rows)

    def is_rejected(self, item: str) -> bool:
        """Return whether the user rejected an item."""
        with self._database.read_transaction() as connection:
            select = "SELECT 1 FROM review_answer WHERE item_id = ? AND answer = ?"
            return connection.execute(select, (item, ReviewAnswer.REJECTED)).fetchone() is not None

    def record(self, store: str, items: Iterable[str], answer: ReviewAnswer, at: float) -> None:
        """Store an answer to these items, in place of an earlier one."""
        with self._database.write_transaction() as connection:
            connection.executemany(
                "INSERT INTO review_answer (item_id, store, answer, answered_at) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (item_id) DO UPDATE SET answer = excluded.answer, answered_at = excluded.answered_at",
                [(item, store, answer.value, at) for item in items],
            )
            save_decisions(connection, self._database.path, store)


class QuestionKey(NamedTuple):
    """The key of the finding that raised a question, and the id that the entry had at that time."""

    finding_key: str
    entry_id: str


class QuestionSubjects:
    """The entries that the questions of all stores are about.

    The questions are in the journal, with the id that the entry had when the question was asked. The present id is
    stored here. A question without a row here is about the entry that has the id in the journal.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, store: str, questions: Iterable[QuestionKey]) -> None:
        """Store questions that are asked now, when the entries have the ids of the keys."""
        rows = [(store, key.finding_key, key.entry_id, key.entry_id) for key in questions]
        if not rows:
            return
        with self._database.write_transaction() as connection:
            connection.executemany(
                "INSERT INTO question_subject (store, finding_key, asked_entry_id, current_entry_id) "
                "VALUES (?, ?, ?, ?) ON CONFLICT (store, finding_key, asked_entry_id) "
                "DO UPDATE SET current_entry_id = excluded.current_entry_id",
                rows,
            )
            save_decisions(connection, self._database.path, store)

    def current_ids(self, store: str) -> Mapping[QuestionKey, str]:
        """Return the present ids of the entries, as of the last look at their file."""
        with self._database.read_transaction() as connection:
            rows = connection.execute("SELECT * FROM question_subject WHERE store = ?", (store,))
            return {QuestionKey(r["finding_key"], r["asked_entry_id"]): str(r["current_entry_id"]) for r in rows}
