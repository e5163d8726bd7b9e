"""Prepare a document for the index: remove its secrets, split it into passages and words, read its citations.

Only `writer` needs it, which is loaded when a file has changed: the redaction rules take longer to load than a search.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from echod.hooks.mentions import text_mentions
from echod.memory.prompt_injection import find_injection, might_contain_injection
from echod.memory.redact import redact, redact_entry
from echod.search.documents import DocumentKind, SearchDocument
from echod.search.words import passages, words

_LINES = re.compile(r":L?\d+(?:[-\u2013]L?\d+)?(?:,\s*L?\d+(?:[-\u2013]L?\d+)?)*$|#L\d+(?:-L?\d+)?$")


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


def prepare(document: SearchDocument) -> PreparedDocument:
    """Return the parts of a document for the index."""
    title, source = redact(document.title).text, redact(document.source).text
    redaction = redact_entry(document.body)
    body = redaction.text
    clean_lines = frozenset() if redaction.spans else frozenset(document.body.split("\n"))
    text = body if document.text is None else _redact_unless_clean(document.text, clean_lines)
    clean_body = "" if redaction.spans else document.body
    citations = tuple(dict.fromkeys(_citation(cite, clean_body) for cite in document.citations))
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


def _redact_unless_clean(text: str, clean_lines: frozenset[str]) -> str:
    """Redact a text, unless all its lines are known to be without secrets: redaction is the slowest part."""
    return text if clean_lines.issuperset(text.split("\n")) else redact_entry(text).text


def _citation(text: str, clean_body: str) -> Citation:
    clean = text if text in clean_body else redact(text).text
    path = _LINES.sub("", clean)
    return Citation(clean, path, path.rpartition("/")[2].lower())
