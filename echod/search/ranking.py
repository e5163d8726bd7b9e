"""Rank the documents of an index for a query.

The score is made of how much of the query a document covers, where a rare word counts more than a common one:

- the *best passage* counts most: its own words, and those of the title, which belongs to every passage;
- the next two passages count less, as does the share of the query that the whole document covers;
- *synonyms* of the trade count half;
- words that are *similar* to the rarest words of the query (`dedupe` and `deduplication`, a typo) are weaker evidence.

The number of times that a word occurs in a passage hardly matters, since passages are short. So only the row ids of
each word are read, which takes a tenth of the time of SQLite's own `bm25`. A very common word is read only in passages
that also have a rarer one. docs/search.md has the figures for each choice.
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from echod.search.schema import DOCUMENTS_PER_COLLECTION, PASSAGES_PER_DOCUMENT
from echod.search.words import query_words, synonyms, trigrams

TITLE_WEIGHT: Final = 1.57
"""The weight of a word in the title; in a passage it is 1."""
BOTH_WEIGHT: Final = 1.7
"""The weight of a word in title and passage."""
NEXT_PASSAGES_WEIGHT: Final = 0.4
COVERAGE_WEIGHT: Final = 1.0
SIMILAR_WEIGHT: Final = 0.35
PREFIX_WEIGHT: Final = 0.5
"""The weight of a word that only begins like a word of the query which the index does not have."""
SIMILARITIES: Final = (0.5, 0.75)
"""The share of a word's trigrams that another word must have to be similar, or very similar."""

SYNONYM_WEIGHT: Final = 0.5
"""The weight of a word that means nearly the same."""

ROW_BUDGET: Final = 1_200
"""How many rows of the rarest words are read. More common words are read only in passages that have one of those."""
_MIN_READ_WORDS: Final = 1
_MAX_ROWS: Final = 4_000
"""How many rows are read of the rarest word, even beyond the budget."""
_MIN_SIMILAR_LENGTH: Final = 4
_SIMILAR_PREFIX_LENGTH: Final = 2
_SIMILAR_QUERY_WORDS: Final = 5
_MAX_SIMILAR_WORDS: Final = 10
_MAX_SIMILAR_ROWS: Final = 300
_ROWS_PER_COLLECTION: Final = DOCUMENTS_PER_COLLECTION * PASSAGES_PER_DOCUMENT
_MAX_ROW: Final = (1 << 63) - 1
_MAX_SEPARATE_COLLECTIONS: Final = 8
"""Up to this number of collections, reading the rows of each is faster than reading all rows and choosing."""


class _WordRows(NamedTuple):
    """The rows with one word of the query. `frequency` is the number of documents, estimated for a common word.

    `weight` is less than 1 for a mere prefix.
    """

    titles: frozenset[int]
    passages: Sequence[int]
    documents: frozenset[int]
    frequency: float
    weight: float


def rank(connection: sqlite3.Connection, collections: Collection[int], query: str) -> dict[int, float]:
    """Return the scores of the documents of these collections that match a query, by the ids of their rows.

    A document matches if it has a word of the query, or a similar word. If the query is a single word that some
    documents have, those with a similar word do not match.
    """
    index = _IndexRows(connection, collections)
    words = query_words(query)
    if not words or not index.total:
        return {}
    rows = index.read(words)
    rarity = {word: _rarity(rows[word].frequency, index.total) for word in words}
    total = sum(rarity.values())
    titles: defaultdict[int, float] = defaultdict(float)
    passages: defaultdict[int, float] = defaultdict(float)
    coverage: defaultdict[int, float] = defaultdict(float)
    evidence = [(rows[word], rarity[word] * rows[word].weight) for word in words]
    evidence += [
        (others, min(rarity[word], _rarity(others.frequency, index.total)) * SYNONYM_WEIGHT)
        for word in words
        if (others := index.read_synonyms(word)) is not None
    ]
    for found, value in evidence:
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
        title = titles.get(document, 0.0)
        values = by_document.get(document)
        if values is None:
            scores[document] = title
        elif len(values) == 1:
            scores[document] = values[0] + title
        else:
            values.sort(reverse=True)
            scores[document] = values[0] + title + NEXT_PASSAGES_WEIGHT * sum(value + title for value in values[1:3])
    return _combine(scores, coverage, index.similar(words, rows), total)


def _combine(
    scores: Mapping[int, float], coverage: Mapping[int, float], similar: Mapping[int, float], total: float
) -> dict[int, float]:
    highest = max(scores.values(), default=0.0) or 1.0
    combined = {
        document: score / highest + COVERAGE_WEIGHT * coverage[document] / total for document, score in scores.items()
    }
    share = SIMILAR_WEIGHT / (max(similar.values(), default=0.0) or 1.0)
    for document, value in similar.items():
        combined[document] = combined.get(document, 0.0) + share * value
    return combined


def _rarity(documents: float, total: int) -> float:
    return math.log(1 + (total - min(documents, total) + 0.5) / (documents + 0.5))


class _Range(NamedTuple):
    """The rows from `first` to `last`, with the number of documents in them."""

    first: int
    last: int
    documents: int


class _IndexRows:
    """Reads the rows of words in some collections. `total` is the number of their documents."""

    def __init__(self, connection: sqlite3.Connection, collections: Collection[int]) -> None:
        self._connection = connection
        select = "SELECT id, documents FROM collection WHERE documents > 0"
        sizes: dict[int, int] = dict(connection.execute(select).fetchall())
        self._collections = sizes.keys() & frozenset(collections)
        self.total = sum(sizes[collection] for collection in self._collections)
        if len(self._collections) > _MAX_SEPARATE_COLLECTIONS:
            self._ranges = [_Range(0, _MAX_ROW, sum(sizes.values()))]
        else:
            self._ranges = [
                _Range(number * _ROWS_PER_COLLECTION, (number + 1) * _ROWS_PER_COLLECTION - 1, sizes[number])
                for number in self._collections
            ]

    def read(self, words: Sequence[str]) -> Mapping[str, _WordRows]:
        """Return the rows of each word: all rows of the rarest words, and those of the others near them."""
        expressions = {word: _quote(word) for word in words}
        counts = {word: self._count(expressions[word]) for word in words}
        for word in words:
            if not counts[word] and len(word) >= _MIN_SIMILAR_LENGTH:
                expressions[word] += "*"
                counts[word] = self._count(expressions[word])
        found: dict[str, _WordRows] = {}
        read_rows, read_words = 0, 0
        near = ""
        for word in sorted(words, key=lambda word: counts[word]):
            expression, count = expressions[word], counts[word]
            weight = PREFIX_WEIGHT if expression.endswith("*") else 1.0
            if read_words < _MIN_READ_WORDS or read_rows + count <= ROW_BUDGET:
                ids = self._row_ids(expression, _MAX_ROWS)
                read_rows += len(ids)
                read_words += bool(ids)
                near = f"{near} OR {expression}" if near else expression
            else:
                ids = self._row_ids(f"{expression} AND ({near})", ROW_BUDGET)
            is_complete = count <= ROW_BUDGET and len(ids) < _MAX_ROWS
            found[word] = _word_rows(ids, None if is_complete else min(count, self.total), weight=weight)
        return found

    def _count(self, expression: str) -> float:
        """Return the number of passages with a word. Beyond the budget it is estimated from the first documents."""
        found = 0.0
        select = (
            "SELECT count(*), max(rowid) FROM "
            "(SELECT rowid FROM passage WHERE passage MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?)"
        )
        for rows in self._ranges:
            values = (expression, rows.first, rows.last, ROW_BUDGET + 1)
            count, last = self._connection.execute(select, values).fetchone()
            if count > ROW_BUDGET:
                seen = max(1, (last - rows.first) // PASSAGES_PER_DOCUMENT)
                count = max(count, count * rows.documents / seen)
            found += count
        return found

    def read_synonyms(self, word: str) -> _WordRows | None:
        """Return the rows with a word that means nearly the same; None if no such word is known."""
        others = synonyms(word)
        return _word_rows(self._row_ids(" OR ".join(map(_quote, others)), _MAX_SIMILAR_ROWS)) if others else None

    def similar(self, words: Sequence[str], rows: Mapping[str, _WordRows]) -> Mapping[int, float]:
        """Return the documents with words similar to the rarest words of the query."""
        found: defaultdict[int, float] = defaultdict(float)
        if len(words) == 1 and rows[words[0]].documents and rows[words[0]].weight == 1.0:
            return found
        for word in sorted(words, key=lambda word: rows[word].frequency)[:_SIMILAR_QUERY_WORDS]:
            best: dict[int, float] = {}
            for similarity, others in self._similar_words(word).items():
                near = self._row_ids(" OR ".join(map(_quote, others)), _MAX_SIMILAR_ROWS)
                best |= dict.fromkeys([row // PASSAGES_PER_DOCUMENT for row in near], similarity)
            if rows[word].weight == 1.0:
                best |= dict.fromkeys(rows[word].documents, 1.0)
            rarity = _rarity(max(len(best), rows[word].frequency), self.total)
            for document, similarity in best.items():
                found[document] += rarity * similarity
        return found

    def _similar_words(self, word: str) -> Mapping[float, Sequence[str]]:
        """Return the words that begin like a word and have at least half of its trigrams, by similarity, ascending.

        Similarities are rounded down to the two of `SIMILARITIES`, so that two reads find the rows of all words.
        """
        if len(word) < _MIN_SIMILAR_LENGTH:
            return {}
        wanted = trigrams(word)
        prefix = word[:_SIMILAR_PREFIX_LENGTH]
        select = "SELECT word FROM word WHERE word >= ? AND word < ?"
        others = self._connection.execute(select, (prefix, f"{prefix}\U0010ffff")).fetchall()
        similar = [(sum([part in other for part in wanted]) / len(wanted), other) for (other,) in others]
        near = sorted(
            (pair for pair in similar if pair[0] >= SIMILARITIES[0] and pair[1] != word),
            key=lambda pair: (-pair[0], len(pair[1])),
        )
        found: dict[float, list[str]] = {}
        for similarity, other in reversed(near[:_MAX_SIMILAR_WORDS]):
            found.setdefault(max(level for level in SIMILARITIES if level <= similarity), []).append(other)
        return found

    def _row_ids(self, expression: str, limit: int) -> list[int]:
        """Return the first rows that match an expression, in the collections."""
        found: list[int] = []
        select = "SELECT rowid FROM passage WHERE passage MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?"
        for rows in self._ranges:
            values = (expression, rows.first, rows.last, limit)
            found += [row for (row,) in self._connection.execute(select, values).fetchall()]
        if len(self._collections) > _MAX_SEPARATE_COLLECTIONS:
            found = [row for row in found if row // _ROWS_PER_COLLECTION in self._collections]
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
