"""A memory file while prune plans it, and the archive of what it removes.

A draft has the file's present blocks, lines and words, and the change of each entry. The archive
(`archive/pruned-{year}.md` and `removed-{year}.md`) has entries verbatim, each below a header line:

    <!-- echod:archived {"id": "...", ..., "bytes": 312, "sha256": "..."} -->
    (312 bytes of the entry)

Restoring reads that number of bytes behind the header and compares their digest. It never parses the entry, so any
entry is restored verbatim, even one that contains a header line. Secrets are redacted before anything is written.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

from echod.memory import MEMORY_FILE
from echod.memory.document import count_lines, parse_block
from echod.memory.entry_matching import EntrySignature, entry_signature
from echod.memory.identity import block_key
from echod.memory.model import Block, Document, Layer
from echod.memory.policy.scoring import NOISE_LAYERS, EntryStatus, ScoreTerms
from echod.memory.policy_model import PolicySettings, PruneAction, Rule
from echod.memory.redact import redact_entry

POINTER = (
    "Pruned by echod: `knowledge.md` keeps learnings that left this file, `archive/` every text word for word. "
    "Find them with `echod search WORDS`."
)
"""The line of a pruned memory file that names the places of the rest."""


@dataclass(slots=True)
class EntryChange:
    """The change of one entry."""

    action: PruneAction
    rules: list[Rule] = field(default_factory=list)  # in the order in which they applied
    removed_learnings: list[int] = field(default_factory=list)  # positions among the learnings of `before_removal`
    before_removal: Block | None = None  # the block as it was when its first learning left


class PruneDraft:
    """A plan in progress."""

    def __init__(self, document: Document, statuses: Sequence[EntryStatus], policy: PolicySettings) -> None:
        self.policy = policy
        self.statuses = {status.index: status for status in statuses}
        self.changes: dict[int, EntryChange] = {}
        self.merged: dict[int, int] = {}  # position of a rolled up entry -> position of the entry that counts it
        self._members: defaultdict[int, list[int]] = defaultdict(list)  # the same the other way round
        self.preamble = document.preamble
        self._original = document
        self._keys = Counter(block_key(document.blocks[index]) for index in self.statuses)
        self._blocks: dict[int, Block] = dict(enumerate(document.blocks))
        self._lines = {index: count_lines(block.text) for index, block in self._blocks.items()}
        self._words = {index: len(block.text.split()) for index, block in self._blocks.items()}
        self._total_lines, self._total_words = sum(self._lines.values()), sum(self._words.values())
        noise = [index for index in self._blocks if self._layer(index) in NOISE_LAYERS]
        self._noise_lines = sum(self._lines[index] for index in noise)
        self._noise_words = sum(self._words[index] for index in noise)

    # Size

    @property
    def lines(self) -> int:
        """The lines of the file."""
        return count_lines(self.preamble.removeprefix("\ufeff")) + self._total_lines

    @property
    def words(self) -> int:
        """The words of the file."""
        return len(self.preamble.split()) + self._total_words

    @property
    def excess(self) -> int:
        """The lines above the limit; 0 or less if the file fits."""
        return self.lines - self.policy.memory_line_limit

    def is_over_limit(self) -> bool:
        """Return whether the file has more lines than its limit."""
        return self.excess > 0

    def lines_of(self, index: int) -> int:
        """Return the lines of an entry in the file; 0 if it left."""
        return self._lines.get(index, 0)

    def words_of(self, index: int) -> int:
        """Return the words of an entry; 0 if it left."""
        return self._words.get(index, 0)

    def may_shorten(self, index: int, leaving: Collection[int] = ()) -> bool:
        """Return whether an entry may be changed in place: not if another one has its title, date and source.

        Only their texts distinguish such entries. With another text, one could be taken for the other. Entries that are
        `leaving` do not count.
        """
        key = block_key(self._original.blocks[index])
        leaving_too = sum(block_key(self._original.blocks[other]) == key for other in leaving if other != index)
        return self._keys[key] - leaving_too == 1

    def noise_size(self) -> tuple[int, int]:
        """Return the lines and words of all observations and traced entries."""
        return self._noise_lines, self._noise_words

    def inscribed_lines(self) -> int:
        """Return the lines of all inscribed entries."""
        return sum(self._lines[index] for index in self._blocks if self._layer(index) is Layer.INSCRIBED)

    def _layer(self, index: int) -> Layer | None:
        status = self.statuses.get(index)
        return status.layer if status else None

    # Content

    def block(self, index: int) -> Block:
        """Return a block as it is now."""
        return self._blocks[index]

    def contains(self, index: int) -> bool:
        """Return whether the block is still in the file."""
        return index in self._blocks

    def removable(self, layers: Iterable[Layer]) -> list[EntryStatus]:
        """Return the entries of these layers that are in the file and that a rule may touch, in file order."""
        wanted = frozenset(layers)
        return [
            status
            for index, status in self.statuses.items()
            if status.is_removable and status.layer in wanted and index in self._blocks
        ]

    def document(self) -> Document:
        """Return the file as it is now."""
        return Document(self.preamble, tuple(self._blocks[index] for index in sorted(self._blocks)))

    def original(self, index: int) -> Block:
        """Return a block as it was before."""
        return self._original.blocks[index]

    def remaining(self) -> Iterator[int]:
        """Yield the positions of the blocks that are in the file, in its order."""
        yield from sorted(self._blocks)

    # Changes

    def change(self, index: int, rule: Rule) -> EntryChange:
        """Return the change of an entry, with this rule as its latest."""
        change = self.changes.setdefault(index, EntryChange(PruneAction.CONDENSE))
        if rule not in change.rules:
            change.rules.append(rule)
        return change

    def replace(self, index: int, block: Block | None, rule: Rule, leaving: Collection[int] = ()) -> bool:
        """Replace a block by a shorter one. False if there is none, or the entry must keep its text."""
        if block is None or block.text == self._blocks[index].text or not self.may_shorten(index, leaving):
            return False
        self._set(index, block)
        self.change(index, rule)
        return True

    def remove(self, index: int, rule: Rule, action: PruneAction = PruneAction.ARCHIVE) -> None:
        """Remove an entry, and with it the entries that it counts."""
        for member in (index, *self._members.pop(index, ())):
            self.change(member, rule).action = action
            self.merged.pop(member, None)
        self._add_size(index, -self._lines[index], -self._words[index])
        del self._blocks[index], self._lines[index], self._words[index]

    def merge(self, index: int, kept: int) -> None:
        """Remove an entry that another one counts from now on."""
        if index != kept:
            self.remove(index, Rule.ROLLED_UP, PruneAction.ROLL_UP)
        else:
            self.changes[index].action = PruneAction.ROLL_UP  # the summary is another entry in its place
        self.merged[index] = kept
        self._members[kept].append(index)

    def restore(self, index: int) -> None:
        """Restore an entry as it was before."""
        del self.changes[index]
        if (kept := self.merged.pop(index, None)) is not None:
            self._members[kept].remove(index)
        self._set(index, self._original.blocks[index])

    def add_pointer(self) -> None:
        """Add the line that names the places of the rest, unless it is there."""
        if POINTER in self.preamble:
            return
        newline = "\r\n" if "\r\n" in self.preamble else "\n"
        head = self.preamble.rstrip()
        separator = newline * 2 if head.strip("\ufeff") else ""
        self.preamble = f"{head}{separator}{POINTER}{newline}{newline}"

    def remove_pointer(self) -> None:
        """Restore the text above the first entry."""
        self.preamble = self._original.preamble

    def _set(self, index: int, block: Block) -> None:
        lines, words = count_lines(block.text), len(block.text.split())
        self._add_size(index, lines - self.lines_of(index), words - self.words_of(index))
        self._blocks[index], self._lines[index], self._words[index] = block, lines, words

    def _add_size(self, index: int, lines: int, words: int) -> None:
        self._total_lines += lines
        self._total_words += words
        if self._layer(index) in NOISE_LAYERS:
            self._noise_lines += lines
            self._noise_words += words


MAX_ARCHIVE_BYTES = 1024 * 1024
"""The size at which a new archive file is started."""

PRUNED_STEM = "pruned"
"""The prefix of the names of archive files with entries removed by rules."""

REMOVED_STEM = "removed"
"""The prefix of the names of archive files with entries removed by the user or replaced by another edit."""

_HEADER = re.compile(rb"^<!-- echod:archived (\{[^\n]*\}) -->\r?\n", re.MULTILINE)


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
