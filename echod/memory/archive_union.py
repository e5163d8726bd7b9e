"""Unite two branches of an archive file, and find the entries that archives contain as forgotten.

An archive is a sequence of records: a comment line of echod's, then a text. A record of an entry has the length of its
text in that line (`policy.archive`), so a text with such a line in it stays whole. Text before the first record is one,
too. Records are compared by their text alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable

from echod.memory.branches import interleave
from echod.memory.document import parse_block
from echod.memory.entry_matching import EntrySignature, entry_signature
from echod.memory.model import Block, Document
from echod.memory.policy.archive import ArchivedEntry, read_archive
from echod.memory.policy_model import Rule

_RECORD_START = re.compile(rb"^<!-- echod(?::archived (\{[^\n]*\})|: [^\n]*) -->\r?\n", re.MULTILINE)
_DATE = re.compile(rb'"date": "(\d{4}-\d\d-\d\d)"|^<!-- echod: [^\n]*?(\d{4}-\d\d-\d\d) -->')


def unite_archives(one: bytes, other: bytes) -> bytes:
    """Return an archive with the records of both, each once, in their order and otherwise by date.

    The result is the same for `one` and `other` exchanged, and united again with either it does not change.
    """
    first, second = _records(one), _records(other)
    if set(first) == set(second):
        return min(one, other, key=lambda data: (not data.strip(), data))
    # A side with everything stays as it is, so that the other takes over its bytes.
    for data, records, others in ((one, first, second), (other, second, first)):
        if set(records) >= set(others):
            return data
    return b"\n\n".join(interleave([first, second], _order)) + b"\n"


def missing_records(before: bytes, after: bytes) -> list[str]:
    """Return the records of `before` that `after` lacks, as text."""
    present = set(_records(after))
    return [record.decode(errors="replace") for record in _records(before) if record not in present]


def _order(record: bytes) -> tuple[str, ...]:
    found = _DATE.search(record)
    day = "" if found is None else (found[1] or found[2]).decode()
    return day, record.decode(errors="surrogateescape")


def _records(data: bytes) -> list[bytes]:
    """Return the records of an archive without the blank lines around them. The text of an entry keeps its own."""
    starts, text_ends = [0], [0]
    position = 0
    while found := _RECORD_START.search(data, position):
        # A line with the reason comes before the record of the entry, and belongs to it.
        previous = data[starts[-1] : found.start()]
        is_introduced = found[1] is not None and _RECORD_START.fullmatch(previous.strip() + b"\n") is not None
        if not is_introduced:
            starts.append(found.start())
            text_ends.append(0)
        position = text_ends[-1] = min(found.end() + _text_length(found[1]), len(data))
    pieces = []
    for begin, text_end, end in zip(starts, text_ends, [*starts[1:], len(data)], strict=True):
        text = data[begin:end].rstrip(b"\r\n")
        pieces.append(data[begin : max(text_end, begin + len(text))].lstrip(b"\r\n"))
    return [piece for piece in dict.fromkeys(pieces) if piece.strip()]


def _text_length(header: bytes | None) -> int:
    """Return the length in bytes of the text behind a record's line, as far as the line has it."""
    try:
        fields = json.loads(header or b"{}")
    except (ValueError, RecursionError):
        return 0
    length = fields.get("bytes") if isinstance(fields, dict) else None
    return max(0, length) if isinstance(length, int) else 0


IdParts = tuple[str, str, str]
"""The digests of an entry's title, date and source, which an edit of its text does not change."""

_FORGETTING_RULES = (Rule.FORGOTTEN, Rule.RESTORED)


def forgotten_signatures(archives: Iterable[bytes], undone_jobs: Collection[int] = ()) -> set[EntrySignature]:
    """Return the signatures of forgotten entries, by which they are recognized even if another program changed them.

    `archives` are the contents of `removed-*.md`, oldest first. Records of `undone_jobs` do not count.
    """
    events = [event for data in archives for event in read_archive(data).entries if event.rule in _FORGETTING_RULES]
    return {entry_signature(parse_block(event.text)) for event in _in_force(events, undone_jobs)}


def _in_force(events: Iterable[ArchivedEntry], undone_jobs: Collection[int]) -> list[ArchivedEntry]:
    events = list(events)
    last_rules = {event.id: event.rule for event in events if event.job not in undone_jobs}
    return [e for e in events if e.rule == Rule.FORGOTTEN and last_rules.get(e.id) == Rule.FORGOTTEN]


def forgotten_only_in(archives: Iterable[bytes], other_archives: Iterable[bytes]) -> set[IdParts]:
    """Return the entries, by title, date and source, that records of `archives` forget and `other_archives` lack."""
    known = {(e.id, e.day, e.job, e.text) for data in other_archives for e in read_archive(data).entries}
    events = [e for data in archives for e in read_archive(data).entries if e.rule in _FORGETTING_RULES]
    new = (e for e in _in_force(events, ()) if (e.id, e.day, e.job, e.text) not in known)
    return {entry_signature(parse_block(event.text)).id_parts for event in new}


def without_forgotten(merged: Document, side: Document, forgotten: Collection[IdParts]) -> Document:
    """Return `merged` without the entries that the writer of `side` forgot, in whatever version.

    An entry that is in `side` stays, because it was remembered again since.
    """
    if not forgotten:
        return merged
    kept = {entry_signature(block).id_parts for block in side.blocks if block.entry}

    def stays(block: Block) -> bool:
        return block.entry is None or (parts := entry_signature(block).id_parts) in kept or parts not in forgotten

    return Document(merged.preamble, tuple(block for block in merged.blocks if stays(block)))
