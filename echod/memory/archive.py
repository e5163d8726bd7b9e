"""The archive of entries that left a memory.

It (`archive/pruned-{year}.md` and `removed-{year}.md`) has entries verbatim, each below a header line:

    <!-- echod:archived {"id": "...", ..., "bytes": 312, "sha256": "..."} -->
    (312 bytes of the entry)

Restoring reads that number of bytes behind the header and compares their digest. It never parses the entry, so any
entry is restored verbatim, even one that contains a header line. Secrets are redacted before anything is written.

Not in `policy`, so that what commits or recovers a file loads no policy.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from echod.lazy import lazy_pattern
from echod.memory import MEMORY_FILE
from echod.memory.document import parse_block
from echod.memory.entry_matching import EntrySignature, entry_signature
from echod.memory.model import Block, Document, Layer
from echod.memory.policy_model import Rule, ScoreTerms
from echod.memory.redact import redact_entry

MAX_ARCHIVE_BYTES = 1024 * 1024
"""The size at which a new archive file is started."""

PRUNED_STEM = "pruned"
"""The prefix of the names of archive files with entries removed by rules."""

REMOVED_STEM = "removed"
"""The prefix of the names of archive files with entries removed by the user or replaced by another edit."""

_HEADER = lazy_pattern(rb"^<!-- echod:archived (\{[^\n]*\}) -->\r?\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ArchivedEntry:
    """An entry in the archive."""

    id: str  # its id when it was archived
    role: str  # the role that it belonged to
    file: str  # the file that it was in (`MEMORY.md`, `knowledge.md`)
    rule: str  # the name of the rule that removed it, possibly of another version of echod
    layer: Layer | None  # its layer; None for an unknown one
    score: float | None  # its score on that day; None where none was computed
    terms: ScoreTerms | None
    day: date  # the day on which it was archived
    text: str  # its block, verbatim except for secrets
    redacted: bool = False  # a secret was removed
    job: int | None = None  # the job that archived it; None until the text is written


class DamagedArchiveEntry(NamedTuple):
    """An archived entry whose text was changed: its id, if it can be read, and its offset in bytes."""

    id: str
    offset: int


class Archive(NamedTuple):
    """The content of an archive file. `damaged` entries were changed later; their text is still in the file."""

    entries: tuple[ArchivedEntry, ...]
    damaged: tuple[DamagedArchiveEntry, ...]


def to_archived_entry(
    block: Block,
    entry_id: str,
    role: str,
    rule: Rule,
    day: date,
    *,
    file: str = MEMORY_FILE,
    score: float | None = None,
    terms: ScoreTerms | None = None,
) -> ArchivedEntry:
    """Return a block in the form of the archive, without secrets."""
    redaction = redact_entry(block.text)
    layer = block.entry.layer if block.entry else None
    changed = redaction.text != block.text
    return ArchivedEntry(entry_id, role, file, rule.value, layer, score, terms, day, redaction.text, changed)


def render_archived_entries(entries: Iterable[ArchivedEntry], job: int | None) -> bytes:
    """Return the bytes to append to an archive file for these entries, archived by this job."""
    return b"".join(_render_entry(entry, job) for entry in entries)


def read_archive(data: bytes) -> Archive:
    """Return the entries of an archive file in order. All other text in it is skipped."""
    entries: list[ArchivedEntry] = []
    damaged: list[DamagedArchiveEntry] = []
    position = 0
    while header := _HEADER.search(data, position):
        fields = _parse_header(header[1])
        length = fields.get("bytes")
        end = header.end() + (max(0, length) if isinstance(length, int) else 0)
        body = data[header.end() : end]
        entry = _parse_entry(fields, body)
        if entry is None:
            damaged.append(DamagedArchiveEntry(str(fields.get("id", "")), header.start()))
            position = header.end()
        else:
            entries.append(entry)
            position = end
    return Archive(tuple(entries), tuple(damaged))


def select_archive_file(year: int, sizes: Mapping[str, int], added_bytes: int = 0, *, stem: str = PRUNED_STEM) -> str:
    """Return the archive file that takes `added_bytes` more bytes this year, relative to the role.

    `sizes` are the bytes of the files in the role's archive by name; files of another stem are ignored. A single
    addition may be larger than the limit.
    """
    matches = (re.fullmatch(rf"{stem}-{year}-(\d+)\.md", name) for name in sizes)
    numbers = [int(match[1]) for match in matches if match]
    number = 1
    while True:
        name = f"{stem}-{year}.md" if number == 1 else f"{stem}-{year}-{number}.md"
        size = sizes.get(name, 0)
        # A file with a higher number means that this one was full, even if it became smaller since.
        later = any(other > number for other in numbers)
        if not later and (size == 0 or size + added_bytes <= MAX_ARCHIVE_BYTES):
            return f"archive/{name}"
        number += 1


def _render_entry(entry: ArchivedEntry, job: int | None) -> bytes:
    text = entry.text.encode()
    fields = {
        "id": entry.id,
        "role": entry.role,
        "file": entry.file,
        "job": job,
        "date": entry.day.isoformat(),
        "rule": entry.rule,
        "layer": entry.layer.value if entry.layer else None,
        "score": entry.score,
        **(entry.terms._asdict() if entry.terms else dict.fromkeys(ScoreTerms._fields)),
        "redacted": entry.redacted,
        "bytes": len(text),
        "sha256": hashlib.sha256(text).hexdigest(),
    }
    header = json.dumps(fields).replace(">", "\\u003e")  # so that no value ends the comment
    # Starts with a line break, because another program may have left the file without one.
    return b"\n<!-- echod:archived " + header.encode() + b" -->\n" + text + (b"" if text.endswith(b"\n") else b"\n")


def _parse_header(header: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(header)
    except (ValueError, RecursionError):  # not JSON, or not UTF-8
        return {}
    return fields if isinstance(fields, dict) else {}


def _parse_entry(fields: Mapping[str, Any], body: bytes) -> ArchivedEntry | None:
    """Return the entry, if header and text are unchanged."""
    if fields.get("sha256") != hashlib.sha256(body).hexdigest() or fields.get("bytes") != len(body):
        return None
    terms = [fields.get(name) for name in ScoreTerms._fields]
    job, layer, score = fields.get("job"), fields.get("layer"), fields.get("score")
    try:
        return ArchivedEntry(
            id=str(fields["id"]),
            role=str(fields["role"]),
            file=str(fields["file"]),
            rule=str(fields["rule"]),
            layer=Layer(layer) if layer in set(Layer) else None,
            score=float(score) if isinstance(score, int | float) else None,
            terms=None if None in terms else ScoreTerms(*(float(term) for term in terms if term is not None)),
            day=date.fromisoformat(fields["date"]),
            text=body.decode(),
            redacted=fields.get("redacted") is True,
            job=job if isinstance(job, int) else None,
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


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

    return merged.with_blocks(block for block in merged.blocks if stays(block))
