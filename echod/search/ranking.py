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

import json
import math
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from operator import eq
from typing import Any, Final, NamedTuple

from echod.search.schema import DOCUMENTS_PER_COLLECTION, PASSAGE_BITS, PASSAGES_PER_DOCUMENT
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

ROW_BUDGET: Final = 300
"""How many rows of the rarest words are read. More common words are read only in passages that have one of those."""
_BUDGET_PER_PASSAGE: Final = 100
"""Documents of many passages, such as conversations, need more rows: so many for each passage of an average one."""
_MAX_ROW_BUDGET: Final = 1_000
_MIN_READ_WORDS: Final = 1
_MAX_READ_FACTOR: Final = 3
"""How many rows are read of the rarest word, even beyond the budget, as a multiple of it."""
_MIN_SIMILAR_LENGTH: Final = 4
_SIMILAR_PREFIX_LENGTH: Final = 2
_SIMILAR_QUERY_WORDS: Final = 5
_MAX_SIMILAR_WORDS: Final = 10
_MAX_SIMILAR_ROWS: Final = 100
_MAX_SIMILAR_FREQUENCY: Final = 100
"""A word that more documents have needs no similar ones."""
_SIMILAR_ROW_BUDGET: Final = 300
"""How many rows with similar words are read, those of the rarest words first. A small memory has fewer."""
_MAX_COMMON_ROWS: Final = 8_000
"""How many rows of common words are passed over in search of those near a rarer word, the rarer words first. The most
common ones hardly separate documents."""
_ROWS_PER_COLLECTION: Final = DOCUMENTS_PER_COLLECTION * PASSAGES_PER_DOCUMENT
_MAX_ROW: Final = (1 << 63) - 1
_MAX_SEPARATE_COLLECTIONS: Final = 8
"""Up to this number of collections, reading the rows of each is faster than reading all rows and choosing."""


_SELECT_ROWS: Final = (
    "SELECT json_group_array(rowid) FROM "
    "(SELECT rowid FROM passage WHERE passage MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?)"
)
"""As one text, since a list of numbers takes half the time of as many rows."""

_MAX_CACHED, _MAX_CACHED_ROWS = 20_000, 300
"""How many counts, and how many lists of rows, are kept between queries: some megabytes."""


class WordRows(NamedTuple):
    """The rows with one word of the query. `frequency` is the number of documents, estimated for a common word.

    `weight` is less than 1 for a mere prefix.
    """

    titles: frozenset[int]
    passages: Sequence[int]
    owners: Sequence[int]
    """The document of each passage."""
    documents: frozenset[int]
    repeated: Sequence[int]
    """The documents with several of these passages, each once or more."""
    frequency: float
    weight: float


class TermCache:
    """Parts of an index that earlier queries read: counts, rows and similar words. Kept while the index is unchanged.

    A process that answers many searches reads the common words of a memory once. For one connection.
    """

    def __init__(self) -> None:
        self.values: dict[tuple[object, ...], Any] = {}
        self.rows: dict[tuple[object, ...], WordRows] = {}
        self._version: tuple[int, int] | None = None

    def follow(self, connection: sqlite3.Connection) -> None:
        """Forget everything if this or another connection has changed the index, and if there is too much."""
        (shared,) = connection.execute("PRAGMA data_version").fetchone()
        version = (connection.total_changes, int(shared))
        if version != self._version or len(self.values) > _MAX_CACHED:
            self.values.clear()
        if version != self._version or len(self.rows) > _MAX_CACHED_ROWS:
            self.rows.clear()
        self._version = version


def rank(
    connection: sqlite3.Connection, collections: Collection[int], query: str, cache: TermCache | None = None
) -> dict[int, float]:
    """Return the scores of the documents of these collections that match a query, by the ids of their rows.

    A document matches if it has a word of the query, or a similar word. If the query is a single word that some
    documents have, those with a similar word do not match.
    """
    index = _IndexRows(connection, collections, cache or TermCache())
    words = query_words(query)
    if not words or not index.total:
        return {}
    rows = index.read(words)
    rarity = {word: _rarity(rows[word].frequency, index.total) for word in words}
    total = sum(rarity.values())
    evidence = [WordEvidence(rows[word], rarity[word] * rows[word].weight) for word in words]
    evidence += [
        WordEvidence(others, min(rarity[word], _rarity(others.frequency, index.total)) * SYNONYM_WEIGHT)
        for word in words
        if (others := index.read_synonyms(word)) is not None
    ]
    return combine_evidence(evidence, index.similar(words, rows), total)


class WordEvidence(NamedTuple):
    """The rows with a word, and how much the word counts."""

    rows: WordRows
    value: float


def combine_evidence(evidence: Sequence[WordEvidence], similar: Mapping[int, float], total: float) -> dict[int, float]:
    """Return the scores of documents. `total` is what a document with all words of the query is worth.

    Most documents have one word in one passage, which is then their score and their coverage. Only the others are
    looked at one by one.
    """
    several: set[int] = set()
    seen: set[int] = set()
    for rows, _ in evidence:
        several.update(rows.titles, rows.repeated, seen & rows.documents)
        seen |= rows.documents
    single = [(rows.documents - several, value) for rows, value in evidence]
    scores = _score(several, evidence)
    highest = max([*scores.values(), *(value for documents, value in single if documents)], default=0.0) or 1.0
    of_score, of_coverage = 1 / highest, COVERAGE_WEIGHT / total
    combined: dict[int, float] = {}
    for documents, value in single:
        combined |= dict.fromkeys(documents, value * of_score + value * of_coverage)
    coverage = dict.fromkeys(scores, 0.0)
    for rows, value in evidence:
        for document in rows.documents & several:
            coverage[document] += value
    for document, score in scores.items():
        combined[document] = score * of_score + coverage[document] * of_coverage
    share = SIMILAR_WEIGHT / (max(similar.values(), default=0.0) or 1.0)
    for document, value in similar.items():
        combined[document] = combined.get(document, 0.0) + share * value
    return combined


def _score(documents: Collection[int], evidence: Iterable[WordEvidence]) -> dict[int, float]:
    """Return what the title and the three best passages of each of these documents are worth."""
    titles = dict.fromkeys(documents, 0.0)
    passages: dict[int, float] = {}
    for rows, value in evidence:
        for document in rows.titles:
            titles[document] += value * TITLE_WEIGHT
        below_title = value * (BOTH_WEIGHT - TITLE_WEIGHT)
        for passage, document in zip(rows.passages, rows.owners, strict=True):
            if document in documents:
                added = below_title if document in rows.titles else value
                passages[passage] = passages[passage] + added if passage in passages else added
    best: dict[int, float] = {}
    several: dict[int, list[float]] = {}  # few documents have it, and a list for each of the others would take time
    for passage, value in passages.items():
        document = passage >> PASSAGE_BITS
        if document not in best:
            best[document] = value
        elif document in several:
            several[document].append(value)
        else:
            several[document] = [best[document], value]
    for document, values in several.items():
        values.sort(reverse=True)
        title = titles[document]
        best[document] = values[0] + NEXT_PASSAGES_WEIGHT * sum([value + title for value in values[1:3]])
    return {document: best.get(document, 0.0) + title for document, title in titles.items()}


def _rarity(documents: float, total: int) -> float:
    return math.log(1 + (total - min(documents, total) + 0.5) / (documents + 0.5))


class _Range(NamedTuple):
    """The rows from `first` to `last`, with the number of documents in them."""

    first: int
    last: int
    documents: int


class _IndexRows:
    """Reads the rows of words in some collections. `total` is the number of their documents."""

    def __init__(self, connection: sqlite3.Connection, collections: Collection[int], cache: TermCache) -> None:
        self._connection = connection
        self._cached = cache.values
        self._cached_rows = cache.rows
        cache.follow(connection)
        select = "SELECT id, documents, passages FROM collection WHERE documents > 0"
        rows = connection.execute(select).fetchall()
        sizes = {number: documents for number, documents, _ in rows}
        self._collections = sizes.keys() & frozenset(collections)
        self.total = sum(sizes[collection] for collection in self._collections)
        passages = sum(count for number, _, count in rows if number in self._collections)
        per_document = passages // max(1, self.total)
        self._budget = min(max(ROW_BUDGET, per_document * _BUDGET_PER_PASSAGE), _MAX_ROW_BUDGET)
        if len(self._collections) > _MAX_SEPARATE_COLLECTIONS:
            self._ranges = [_Range(0, _MAX_ROW, sum(sizes.values()))]
        else:
            self._ranges = [
                _Range(number * _ROWS_PER_COLLECTION, (number + 1) * _ROWS_PER_COLLECTION - 1, sizes[number])
                for number in self._collections
            ]

    def read(self, words: Sequence[str]) -> Mapping[str, WordRows]:
        """Return the rows of each word: all rows of the rarest words, and those of the others near them."""
        expressions = {word: _quote(word) for word in words}
        counts = {word: self._count(expressions[word]) for word in words}
        for word in words:
            if not counts[word] and len(word) >= _MIN_SIMILAR_LENGTH:
                expressions[word] += "*"
                counts[word] = self._count(expressions[word])
        found: dict[str, WordRows] = {}
        read_rows, read_words, common_rows = 0, 0, 0.0
        near = ""
        for word in sorted(words, key=lambda word: counts[word]):
            expression, count = expressions[word], counts[word]
            weight = PREFIX_WEIGHT if expression.endswith("*") else 1.0
            if read_words < _MIN_READ_WORDS or read_rows + count <= self._budget:
                rows = self._rows(expression, _MAX_READ_FACTOR * self._budget)
                read_rows += len(rows.passages) + len(rows.titles)
                read_words += bool(rows.documents)
                near = f"{near} OR {expression}" if near else expression
            elif common_rows + count <= _MAX_COMMON_ROWS:
                rows = self._rows(f"{expression} AND ({near})", self._budget)
                common_rows += count
            else:
                rows = word_rows(())
            frequency = rows.frequency if count <= self._budget else min(count, self.total)
            found[word] = rows._replace(frequency=frequency, weight=weight)
        return found

    def _count(self, expression: str) -> float:
        """Return the number of passages with a word. Beyond the budget it is estimated from the first documents."""
        key = (*self._ranges, expression)
        known: float | None = self._cached.get(key)
        if known is not None:
            return known
        found = 0.0
        select = (
            "SELECT count(*), max(rowid) FROM "
            "(SELECT rowid FROM passage WHERE passage MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?)"
        )
        for rows in self._ranges:
            values = (expression, rows.first, rows.last, self._budget + 1)
            count, last = self._connection.execute(select, values).fetchone()
            if count > self._budget:
                seen = max(1, (last - rows.first) // PASSAGES_PER_DOCUMENT)
                count = max(count, count * rows.documents / seen)
            found += count
        self._cached[key] = found
        return found

    def read_synonyms(self, word: str) -> WordRows | None:
        """Return the rows with a word that means nearly the same; None if no such word is known."""
        others = synonyms(word)
        return self._rows(" OR ".join(map(_quote, others)), 3 * _MAX_SIMILAR_ROWS) if others else None

    def similar(self, words: Sequence[str], rows: Mapping[str, WordRows]) -> Mapping[int, float]:
        """Return the documents with words similar to the rarest words of the query."""
        found: defaultdict[int, float] = defaultdict(float)
        if len(words) == 1 and rows[words[0]].documents and rows[words[0]].weight == 1.0:
            return found
        read = 0
        for word in sorted(words, key=lambda word: rows[word].frequency)[:_SIMILAR_QUERY_WORDS]:
            if rows[word].frequency > _MAX_SIMILAR_FREQUENCY:
                break  # so are the following ones
            best: dict[int, float] = {}
            for similarity, others in self._similar_words(word).items() if read < _SIMILAR_ROW_BUDGET else ():
                near = self._rows(" OR ".join(map(_quote, others)), _MAX_SIMILAR_ROWS).documents
                best |= dict.fromkeys(near, similarity)
                read += len(near)
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
        key = ("similar", word)
        known: Mapping[float, Sequence[str]] | None = self._cached.get(key)
        if known is not None:
            return known
        wanted = trigrams(word)
        words = self._words_with_prefix(word[:_SIMILAR_PREFIX_LENGTH])
        counts = Counter[str]()
        for part in wanted:
            counts.update(words.get(part, ()))
        del counts[word]
        least = math.ceil(SIMILARITIES[0] * len(wanted))
        near = [(-shared / len(wanted), len(other), other) for other, shared in counts.items() if shared >= least]
        near.sort()
        found: dict[float, list[str]] = {}
        for similarity, _, other in reversed(near[:_MAX_SIMILAR_WORDS]):
            found.setdefault(max(level for level in SIMILARITIES if level <= -similarity), []).append(other)
        self._cached[key] = found
        return found

    def _words_with_prefix(self, prefix: str) -> Mapping[str, Sequence[str]]:
        """Return the words of the index that begin with a prefix, by their trigrams."""
        key = ("prefix", prefix)
        known: Mapping[str, Sequence[str]] | None = self._cached.get(key)
        if known is not None:
            return known
        found: dict[str, list[str]] = {}
        select = "SELECT word FROM word WHERE word >= ? AND word < ?"
        for (word,) in self._connection.execute(select, (prefix, f"{prefix}\U0010ffff")).fetchall():
            for part in trigrams(word):
                found.setdefault(part, []).append(word)
        self._cached[key] = found
        return found

    def _rows(self, expression: str, limit: int) -> WordRows:
        """Return the first rows that match an expression, in the collections."""
        key = (*self._ranges, expression, limit)
        known = self._cached_rows.get(key)
        if known is not None:
            return known
        found: list[int] = []
        for rows in self._ranges:
            values = (expression, rows.first, rows.last, limit)
            found += json.loads(self._connection.execute(_SELECT_ROWS, values).fetchone()[0])
        if len(self._collections) > _MAX_SEPARATE_COLLECTIONS:
            found = [row for row in found if row // _ROWS_PER_COLLECTION in self._collections]
        read = word_rows(found)
        if len(found) <= self._budget and " AND " not in expression:  # which no other query reads
            self._cached_rows[key] = read
        return read


def word_rows(ids: Sequence[int]) -> WordRows:
    """Return the rows of a word. Those of a document must follow one another. Passage 0 is the title."""
    passages = [row for row in ids if row % PASSAGES_PER_DOCUMENT]
    owners = [row >> PASSAGE_BITS for row in passages]
    documents = frozenset(owners)
    repeated = list(compress(owners, map(eq, owners, owners[1:]))) if len(documents) < len(owners) else ()
    titles = frozenset[int]()
    if len(passages) < len(ids):
        titles = frozenset([row >> PASSAGE_BITS for row in ids if not row % PASSAGES_PER_DOCUMENT])
        documents |= titles
    return WordRows(titles, passages, owners, documents, repeated, len(documents), 1.0)


def _quote(word: str) -> str:
    """Return a word as a string of the full-text syntax, in which nothing is an operator."""
    return '"' + word.replace('"', '""') + '"'
