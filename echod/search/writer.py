"""Write the documents of one collection into the index, in a transaction that the caller runs.

A document that did not change keeps its row, so that an edit of one entry costs little more than that entry.

Only `writer` needs it, which is loaded when a file has changed: the redaction rules take longer to load than a search.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from echod.files import FileVersion
from echod.hooks.mentions import text_mentions
from echod.lazy import lazy_pattern
from echod.memory.prompt_injection import find_injection, might_contain_injection
from echod.memory.redact import find_email_in_evidence, find_secrets, redact, redact_entry, replace_spans
from echod.search.documents import DocumentKind, SearchDocument
from echod.search.schema import DOCUMENTS_PER_COLLECTION, PASSAGES_PER_DOCUMENT
from echod.search.words import passages, words

_LINES = lazy_pattern(r":L?\d+(?:[-\u2013]L?\d+)?(?:,\s*L?\d+(?:[-\u2013]L?\d+)?)*$|#L\d+(?:-L?\d+)?$")


class Citation(NamedTuple):
    """A citation as written, its path without lines, and the last part of that path in lower case."""

    text: str
    path: str
    name: str


class PreparedDocument(NamedTuple):
    """The parts of a document that the index stores. None contains a secret."""

    title: str
    body: str
    source: str
    suspicious: bool
    citations: tuple[Citation, ...]
    mentions: tuple[tuple[str, str, str], ...]
    """The commands and errors that an entry of a memory names: kind, key and text."""
    passages: tuple[tuple[str, ...], ...]
    """The words of the title, then those of each passage of the text."""


_MAX_BATCH_CHARACTERS: Final = 16_000


class _Redactor(NamedTuple):
    """Removes the secrets from a line, and from the text of an entry."""

    line: Callable[[str], str]
    entry: Callable[[str], str]


_REDACTOR: Final = _Redactor(lambda line: redact(line).text, lambda text: redact_entry(text).text)
_CLEAN: Final = _Redactor(str, lambda text: replace_spans(text, find_email_in_evidence(text)).text)
"""For texts without a secret. An entry still loses the e-mail addresses in its evidence."""


def prepare(documents: Iterable[SearchDocument]) -> Iterator[PreparedDocument]:
    """Yield the parts of each document for the index.

    The search for secrets takes longest, and most of it to begin with a text. So the texts of many documents are
    searched as one, with empty lines between them. If there is a secret, each document is searched, and in one with a
    secret each text is redacted for itself.
    """
    for batch in _batches(documents):
        is_clean = not _has_secret(batch)
        for document in batch:
            yield _prepare(document, _CLEAN if is_clean or not _has_secret([document]) else _REDACTOR)


def _has_secret(documents: Sequence[SearchDocument]) -> bool:
    return bool(find_secrets("\n\n".join([text for document in documents for text in _texts(document)])))


def _batches(documents: Iterable[SearchDocument]) -> Iterator[list[SearchDocument]]:
    batch: list[SearchDocument] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += sum(map(len, _texts(document)))
        if size > _MAX_BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _texts(document: SearchDocument) -> Iterator[str]:
    """Yield the texts of a document that the index stores or is searched in. No other one can contain a secret."""
    yield from (document.title, document.source, document.body)
    if document.text is not None:
        yield document.text
    yield from document.citations


def _prepare(document: SearchDocument, redactor: _Redactor) -> PreparedDocument:
    title, source, body = redactor.line(document.title), redactor.line(document.source), redactor.entry(document.body)
    text = body if document.text is None else redactor.entry(document.text)
    citations = tuple(dict.fromkeys(_citation(redactor.line(cite)) for cite in document.citations))
    origin = " ".join([source, *(citation.text for citation in citations)])
    return PreparedDocument(
        title=title,
        body=body,
        source=source,
        suspicious=might_contain_injection(body) and find_injection(f"{title}\n{body}") is not None,
        citations=citations,
        mentions=tuple(text_mentions(body)) if document.kind is DocumentKind.MEMORY else (),
        passages=(tuple(words(title, umlauts=True)), *_passage_words(text, origin)),
    )


def _passage_words(text: str, origin: str) -> Iterator[tuple[str, ...]]:
    for passage in passages(text):
        yield tuple(words(passage, umlauts=True))
    if origin.strip():
        yield tuple(words(origin))


def _citation(clean: str) -> Citation:
    path = _LINES.sub("", clean)
    return Citation(clean, path, path.rpartition("/")[2].lower())


_MIN_SIMILAR_LENGTH: Final = 4
"""Shorter words are not looked up by similarity."""


_MANY_DOCUMENTS: Final = 300
"""After that many new documents, the parts of the full-text index are merged. A search then takes half the time."""


class FileContent(NamedTuple):
    """A file as it was read. `settled` is false if it may change again without a new version."""

    path: str
    version: FileVersion
    settled: bool
    documents: Sequence[SearchDocument]
    problem: str | None


class CollectionWriter:
    """Writes the documents of one collection in the running transaction."""

    def __init__(self, connection: sqlite3.Connection, collection: int) -> None:
        self._connection = connection
        self._collection = collection
        row = connection.execute(
            "SELECT next_document, documents, passages FROM collection WHERE id = ?", (collection,)
        ).fetchone()
        self._next, self._documents, self._passages = row
        self._words: Counter[str] = Counter()
        self._inserted = 0

    def finish(self, now: float) -> None:
        """Write the counts of the collection and of its words."""
        self._connection.execute(
            "UPDATE collection SET next_document = ?, documents = ?, passages = ?, indexed_at = ? WHERE id = ?",
            (self._next, self._documents, self._passages, now, self._collection),
        )
        self._write_words()
        if self._inserted >= _MANY_DOCUMENTS:
            self._connection.execute("INSERT INTO passage (passage) VALUES ('optimize')")

    def delete_file(self, file: int) -> None:
        """Delete a file and its documents."""
        rows = self._connection.execute("SELECT id, passages FROM document WHERE file = ?", (file,)).fetchall()
        for document, count in rows:
            self._delete_document(document, count)
        self._connection.execute("DELETE FROM file WHERE id = ?", (file,))

    def write_file(self, content: FileContent) -> None:
        """Store a file. Documents that did not change keep their rows."""
        connection = self._connection
        values = (*content.version, content.settled, content.problem)
        row = connection.execute(
            "SELECT id FROM file WHERE collection = ? AND path = ?", (self._collection, content.path)
        ).fetchone()
        if row is None:
            file = connection.execute(
                "INSERT INTO file (collection, path, inode, size, modified_ns, changed_ns, settled, problem) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (self._collection, content.path, *values),
            ).lastrowid
        else:
            file = row[0]
            connection.execute(
                "UPDATE file SET inode = ?, size = ?, modified_ns = ?, changed_ns = ?, settled = ?, problem = ? "
                "WHERE id = ?",
                (*values, file),
            )
        known: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
        select = "SELECT digest, id, line, passages FROM document WHERE file = ? ORDER BY id DESC"
        for digest, document, line, count in connection.execute(select, (file,)).fetchall():
            known[digest].append((document, line, count))
        new: list[tuple[str, SearchDocument]] = []
        moved: list[tuple[int, int]] = []
        for found in content.documents:
            digest = _digest(found)
            if same := known[digest]:
                document, line, _ = same.pop()
                if line != found.line:
                    moved.append((found.line, document))
            else:
                new.append((digest, found))
        connection.executemany("UPDATE document SET line = ? WHERE id = ?", moved)
        for document, _, count in (row for rows in known.values() for row in rows):
            self._delete_document(document, count)
        for (digest, found), prepared in zip(new, prepare(found for _, found in new), strict=True):
            self._insert_document(file or 0, digest, found, prepared)

    def _insert_document(self, file: int, digest: str, found: SearchDocument, prepared: PreparedDocument) -> None:
        document = self._collection * DOCUMENTS_PER_COLLECTION + self._next
        self._next += 1
        self._inserted += 1
        self._documents += 1
        self._passages += len(prepared.passages)
        connection = self._connection
        connection.execute(
            "INSERT INTO document (id, file, entry, kind, title, body, line, role, layer, category, domain, date, "
            "source, confidence, suspicious, digest, passages) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                document, file, found.id, found.kind.value, prepared.title, prepared.body, found.line, found.role,
                found.layer, found.category, found.domain, found.date, prepared.source, found.confidence,
                prepared.suspicious, digest, len(prepared.passages),
            ),
        )  # fmt: skip
        connection.executemany(
            "INSERT INTO citation (document, cite, path, name) VALUES (?, ?, ?, ?)",
            [(document, cite.text, cite.path, cite.name) for cite in prepared.citations],
        )
        connection.executemany(
            "INSERT INTO mention (document, kind, key, text) VALUES (?, ?, ?, ?)",
            [(document, *mention) for mention in prepared.mentions],
        )
        first = document * PASSAGES_PER_DOCUMENT
        connection.executemany(
            "INSERT INTO passage (rowid, words) VALUES (?, ?)",
            [(first + number, " ".join(words)) for number, words in enumerate(prepared.passages)],
        )
        self._words.update({word for words in prepared.passages for word in words})

    def _delete_document(self, document: int, passages: int) -> None:
        connection = self._connection
        first = document * PASSAGES_PER_DOCUMENT
        rows = (first, first + passages - 1)
        texts = connection.execute("SELECT words FROM passage WHERE rowid BETWEEN ? AND ?", rows).fetchall()
        connection.execute("DELETE FROM passage WHERE rowid BETWEEN ? AND ?", rows)
        connection.execute("DELETE FROM citation WHERE document = ?", (document,))
        connection.execute("DELETE FROM mention WHERE document = ?", (document,))
        connection.execute("DELETE FROM document WHERE id = ?", (document,))
        self._documents -= 1
        self._passages -= passages
        self._words.subtract({word for (text,) in texts for word in text.split(" ")})

    def _write_words(self) -> None:
        connection = self._connection
        for word, change in self._words.items():
            if len(word) < _MIN_SIMILAR_LENGTH or not change:
                continue
            connection.execute(
                "INSERT INTO word (word, documents) VALUES (?, ?) "
                "ON CONFLICT (word) DO UPDATE SET documents = documents + excluded.documents",
                (word, change),
            )
        connection.execute("DELETE FROM word WHERE documents <= 0")
        self._words.clear()


def _digest(document: SearchDocument) -> str:
    return hashlib.sha256(repr(document._replace(line=0)).encode(errors="surrogatepass")).hexdigest()
