"""Rank the documents of an index for a query.

The score is made of how much of the query a document covers, where a rare word counts more than a common one:

- the *best passage* counts most: its own words, and those of the title, which belongs to every passage;
- the next two passages count a little, so does the share of the query that the whole document covers;
- words that are *similar* to the rarest words of the query (`dedupe` and `deduplication`, a typo) are weaker evidence.

The number of times that a word occurs in a passage hardly matters, since passages are short. So only the row ids of
each word are read, which takes a tenth of the time of SQLite's own `bm25`. A very common word is read only in passages
that also have a rarer one. docs/search.md has the figures for each choice.
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from echod.search.schema import DOCUMENTS_PER_COLLECTION, PASSAGES_PER_DOCUMENT
from echod.search.words import query_words, trigrams

TITLE_WEIGHT: Final = 1.57
"""The weight of a word in the title; in a passage it is 1."""
BOTH_WEIGHT: Final = 1.7
"""The weight of a word in title and passage."""
NEXT_PASSAGES_WEIGHT: Final = 0.15
COVERAGE_WEIGHT: Final = 0.4
SIMILAR_WEIGHT: Final = 0.35
PREFIX_WEIGHT: Final = 0.5
"""The weight of a word that only begins like a word of the query which the index does not have."""
MIN_SIMILARITY: Final = 0.5
"""The share of a word's trigrams that another word must have to be similar."""

COMMON_ROWS: Final = 1000
"""A word in more passages than this is common. If all words of a query are, their passages in common are read."""
_MAX_COMMON_ROWS: Final = 20_000
_MIN_SIMILAR_LENGTH: Final = 4
_SIMILAR_QUERY_WORDS: Final = 5
_MAX_SIMILAR_WORDS: Final = 10
_MAX_SEPARATE_COLLECTIONS: Final = 8
"""Up to this number of collections, reading the rows of each is faster than reading all rows and choosing."""


class Match(NamedTuple):
    """A document that matches a query: the id of its row, and its score."""

    document: int
    score: float


class _WordRows(NamedTuple):
    """The rows with one word of the query. `frequency` is the number of documents, estimated for a common word.

    `weight` is less than 1 for a mere prefix.
    """

    titles: frozenset[int]
    passages: Sequence[int]
    documents: frozenset[int]
    frequency: float
    weight: float


def rank(connection: sqlite3.Connection, collections: Collection[int], query: str) -> list[Match]:
    """Return the documents of these collections that match a query, in no order.

    A document matches if it has a word of the query, or a similar word. If the query is a single word that some
    documents have, those with a similar word do not match.
    """
    index = _IndexRows(connection, collections)
    words = query_words(query)
    if not words or not index.total:
        return []
    rows = index.read(words)
    rarity = {word: _rarity(rows[word].frequency, index.total) for word in words}
    total = sum(rarity.values())
    titles: defaultdict[int, float] = defaultdict(float)
    passages: defaultdict[int, float] = defaultdict(float)
    coverage: defaultdict[int, float] = defaultdict(float)
    for word in words:
        found = rows[word]
        value = rarity[word] * found.weight
        for document in found.titles:
            titles[document] += value * TITLE_WEIGHT
        for passage in found.passages:
            in_title = found.titles and passage // PASSAGES_PER_DOCUMENT in found.titles
            passages[passage] += value * (BOTH_WEIGHT - TITLE_WEIGHT) if in_title else value
        for document in found.documents:
            coverage[document] += value
    by_document: defaultdict[int, list[float]] = defaultdict(list)
    for passage, value in passages.items():
        by_document[passage // PASSAGES_PER_DOCUMENT].append(value)
    scores: dict[int, float] = {}
    for document in coverage:
        values = sorted(by_document.get(document, (0.0,)), reverse=True)
        title = titles.get(document, 0.0)
        scores[document] = values[0] + title + NEXT_PASSAGES_WEIGHT * sum(value + title for value in values[1:3])
    return _combine(scores, coverage, index.similar(words, rows), total)


def _combine(
    scores: Mapping[int, float],
    coverage: Mapping[int, float],
    similar: Mapping[int, float],
    total: float,
) -> list[Match]:
    highest = max(scores.values(), default=0.0) or 1.0
    highest_similar = max(similar.values(), default=0.0) or 1.0
    return [
        Match(
            document,
            scores.get(document, 0.0) / highest
            + SIMILAR_WEIGHT * similar.get(document, 0.0) / highest_similar
            + COVERAGE_WEIGHT * coverage.get(document, 0.0) / total,
        )
        for document in scores.keys() | similar.keys()
    ]


def _rarity(documents: float, total: int) -> float:
    return math.log(1 + (total - min(documents, total) + 0.5) / (documents + 0.5))


class _IndexRows:
    """Reads the rows of words in some collections. `total` is the number of their documents."""

    def __init__(self, connection: sqlite3.Connection, collections: Collection[int]) -> None:
        self._connection = connection
        self._collections = frozenset(collections)
        select = "SELECT id, documents FROM collection WHERE documents > 0"
        sizes: dict[int, int] = dict(connection.execute(select).fetchall())
        self._sizes = {collection: sizes[collection] for collection in self._collections if collection in sizes}
        self.total = sum(self._sizes.values())

    def read(self, words: Sequence[str]) -> Mapping[str, _WordRows]:
        """Return the rows of each word."""
        rare: dict[str, _WordRows] = {}
        common: dict[str, float] = {}
        for word in words:
            ids = self._row_ids(_quote(word), COMMON_ROWS + 1)
            if len(ids) > COMMON_ROWS:
                common[word] = self._estimate(ids)
            else:
                rare[word] = _word_rows(ids)
        if common:
            rare |= self._read_common(common, [word for word in rare if rare[word].passages])
        for word in words:
            if not rare[word].documents and word not in common and len(word) >= _MIN_SIMILAR_LENGTH:
                rare[word] = _word_rows(self._row_ids(f"{_quote(word)}*", COMMON_ROWS), weight=PREFIX_WEIGHT)
        return rare

    def _read_common(self, common: Mapping[str, float], rare: Sequence[str]) -> Mapping[str, _WordRows]:
        """Read common words in the passages that have a rare one; without rare words, in those with most words."""
        if rare:
            near = " OR ".join(map(_quote, rare))
            return {
                word: _word_rows(self._row_ids(f"{_quote(word)} AND ({near})", COMMON_ROWS), count)
                for word, count in common.items()
            }
        by_count = sorted(common, key=lambda word: common[word])
        for number in range(len(by_count), 1, -1):
            together = " AND ".join(map(_quote, by_count[:number]))
            ids = self._row_ids(together, _MAX_COMMON_ROWS)
            if ids:
                return {word: _word_rows(ids if word in by_count[:number] else [], common[word]) for word in common}
        return {
            word: _word_rows(self._row_ids(_quote(word), _MAX_COMMON_ROWS), common[word]) for word in by_count[:1]
        } | {word: _word_rows([], common[word]) for word in by_count[1:]}

    def _estimate(self, ids: Sequence[int]) -> float:
        """Estimate in how many documents a common word is, from its first rows."""
        documents = {row // PASSAGES_PER_DOCUMENT for row in ids}
        seen = max(documents) - min(documents) + 1
        return min(self.total, len(documents) * max(1.0, self.total / seen))

    def similar(self, words: Sequence[str], rows: Mapping[str, _WordRows]) -> Mapping[int, float]:
        """Return the documents with words similar to the rarest words of the query."""
        found: defaultdict[int, float] = defaultdict(float)
        if len(words) == 1 and rows[words[0]].documents and rows[words[0]].weight == 1.0:
            return found
        for word in sorted(words, key=lambda word: rows[word].frequency)[:_SIMILAR_QUERY_WORDS]:
            best = dict.fromkeys(rows[word].documents, 1.0) if rows[word].weight == 1.0 else {}
            for other, similarity in self._similar_words(word):
                for row in self._row_ids(_quote(other), COMMON_ROWS):
                    document = row // PASSAGES_PER_DOCUMENT
                    if best.get(document, 0.0) < similarity:
                        best[document] = similarity
            rarity = _rarity(max(len(best), rows[word].frequency), self.total)
            for document, similarity in best.items():
                found[document] += rarity * similarity
        return found

    def _similar_words(self, word: str) -> Iterable[tuple[str, float]]:
        if len(word) < _MIN_SIMILAR_LENGTH:
            return []
        wanted = sorted(trigrams(word))
        expression = " OR ".join(map(_quote, wanted))
        select = "SELECT word FROM word_part WHERE word_part MATCH ?"
        others = [other for (other,) in self._connection.execute(select, (expression,)) if other != word]
        similar = [(sum([part in other for part in wanted]) / len(wanted), other) for other in others]
        near = sorted(
            (pair for pair in similar if pair[0] >= MIN_SIMILARITY), key=lambda pair: (-pair[0], len(pair[1]))
        )
        return [(other, similarity) for similarity, other in near[:_MAX_SIMILAR_WORDS]]

    def _row_ids(self, expression: str, limit: int) -> list[int]:
        """Return the first rows that match an expression, in the collections."""
        span = DOCUMENTS_PER_COLLECTION * PASSAGES_PER_DOCUMENT
        if len(self._sizes) > _MAX_SEPARATE_COLLECTIONS:
            select = "SELECT rowid FROM passage WHERE passage MATCH ?"
            rows = (row for (row,) in self._connection.execute(select, (expression,)) if row // span in self._sizes)
            return list(islice(rows, limit))
        found: list[int] = []
        select = "SELECT rowid FROM passage WHERE passage MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?"
        for collection in self._sizes:
            values = (expression, collection * span, (collection + 1) * span - 1, limit - len(found))
            found += [row for (row,) in self._connection.execute(select, values).fetchall()]
        return found


def _word_rows(ids: Sequence[int], count: float | None = None, *, weight: float = 1.0) -> _WordRows:
    """Return the rows of a word. Passage 0 of a document is its title."""
    titles = frozenset([row // PASSAGES_PER_DOCUMENT for row in ids if not row % PASSAGES_PER_DOCUMENT])
    passages = [row for row in ids if row % PASSAGES_PER_DOCUMENT]
    documents = titles.union([row // PASSAGES_PER_DOCUMENT for row in passages])
    return _WordRows(titles, passages, documents, len(documents) if count is None else count, weight)


def _quote(word: str) -> str:
    """Return a word as a string of the full-text syntax, in which nothing is an operator."""
    return '"' + word.replace('"', '""') + '"'
