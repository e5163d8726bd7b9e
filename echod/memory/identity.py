"""Compute short ids of entries, which stay the same while everything around and inside an entry changes.

An id is computed from role, title, date and source, never from the position. Moving the entry, editing other entries,
and editing its body, layer, confidence or verified date do not change it. Entries that agree in all four are
distinguished by their bodies, and equal bodies by their order. Then a change to one of them can change the id of
another. `entry_matching` recognises them, so that references and pins follow.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable

from echod.memory.model import Document, Entry

ID_LENGTH = 12
"""Hex digits of an id. Among 10,000 entries of one project two collide by chance once in five million projects."""

# Invisible characters: soft hyphen, zero width, direction marks, variation selectors, tags, byte order mark.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)
_TRAILING_PUNCTUATION = " .,;:\u2026\u3002"

_IdentityKey = tuple[str, str, str]


class UnknownEntryError(LookupError):
    """No entry has an id that begins with the prefix."""

    def __init__(self, prefix: str) -> None:
        super().__init__(f"No entry has an id that begins with {prefix!r}. List the entries to see their ids.")
        self.prefix = prefix


class AmbiguousEntryError(LookupError):
    """Several entries have an id that begins with the prefix."""

    def __init__(self, prefix: str, candidates: tuple[str, ...]) -> None:
        super().__init__(f"{prefix!r} could be {_join_alternatives(candidates)}. Give more digits of the id.")
        self.prefix = prefix
        self.candidates = candidates


def normalize_title(title: str) -> str:
    """Return the title for comparison: one case, one width, no invisible characters, no marks of emphasis or code.

    White space is collapsed, and full stops, commas and colons at the end are dropped.
    """
    if not title.isascii():
        title = unicodedata.normalize("NFKC", _INVISIBLE.sub("", title))
    folded = title.replace("`", "").replace("*", "").casefold()
    return " ".join(folded.split()).rstrip(_TRAILING_PUNCTUATION)


def entry_ids(role: str, document: Document) -> tuple[str | None, ...]:
    """Return the ids of a document's entries, in the order of its blocks; None for an opaque block.

    Of exact repeats the first in the file has the plain id. The ids of the others also depend on a digest of their body
    and, where an earlier repeat has that body too, on a count.
    """
    ids: list[str | None] = []
    bodies: defaultdict[_IdentityKey, Counter[str]] = defaultdict(Counter)
    for block in document.blocks:
        if block.entry is None:
            ids.append(None)
            continue
        key = _identity_key(block.entry)
        body = block.body.replace("\r\n", "\n")
        salt: list[str | int] = []
        if bodies[key]:
            salt = [hashlib.sha256(body.encode()).hexdigest()]
            if bodies[key][body]:
                salt.append(bodies[key][body])
        bodies[key][body] += 1
        ids.append(_digest(role, *key, *salt))
    return tuple(ids)


def resolve_id(prefix: str, ids: Iterable[str]) -> str:
    """Return the one id that begins with `prefix` (in any case).

    Raises:
        UnknownEntryError: no id matches, or the prefix is empty.
        AmbiguousEntryError: several match; it lists them.
    """
    normalized = prefix.strip().lower()
    candidates = sorted({entry_id for entry_id in ids if normalized and entry_id.startswith(normalized)})
    if normalized in candidates:
        return normalized
    if not candidates:
        raise UnknownEntryError(prefix)
    if len(candidates) > 1:
        raise AmbiguousEntryError(prefix, tuple(candidates))
    return candidates[0]


def _identity_key(entry: Entry) -> _IdentityKey:
    day = entry.heading_date.isoformat() if entry.heading_date else ""
    return normalize_title(entry.title), day, " ".join((entry.source or "").split())


def _digest(*parts: str | int) -> str:
    # JSON separates the parts, so that a title is never confused with a title and a date.
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:ID_LENGTH]


def _join_alternatives(candidates: tuple[str, ...]) -> str:
    return f"{', '.join(candidates[:-1])} or {candidates[-1]}"
