"""Unite two branches of an archive file: nothing that either side archived is removed.

An archive is a sequence of records: a comment line of echod's, then a text. A record of an entry has the length of its
text in that line (`policy.archive`), so a text with such a line in it stays whole. Text before the first record is one,
too. Records are compared by their text alone.
"""

from __future__ import annotations

import json
import re

from echod.memory.branches import interleave

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
