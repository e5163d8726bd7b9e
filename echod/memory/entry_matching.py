"""Recognise entries whose ids changed, and rename what earlier versions of the workflow plugins called differently.

An id changes when the user corrects a title, a secret is redacted, or a repeat is removed.

Between two inspections of a file echod keeps a signature of each entry: digests of its title, date, source and body.
Signatures are made from redacted text, so that an entry matches before and after it was scrubbed, and no secret can be
derived from them.

A wrong match would give one entry's references to another, which is worse than losing them. So only unambiguous matches
count. docs/formats.md lists them for users.

Renaming changes only the source and the evidence, never the learning. All names are replaced in one pass, so that a new
name is never taken for an old one, and a second run changes nothing. A name counts only as a whole word: `rune:plan` is
not in `rune:planner`, and the names of teams (`rune-review-7`) never changed. In evidence a part of a path is no name,
because a path must keep leading to its file. Paths of the former layout have their own rows.

"Tarnished" meant a teammate for one day and the lead ever since. It is left alone, and reported where an entry is of
that time or has no date.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from datetime import date
from types import MappingProxyType
from typing import Final, NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.document import parse_block
from echod.memory.edit import with_evidence, with_source
from echod.memory.identity import block_key, entry_ids
from echod.memory.model import Block, Document, Entry, Field, Layer
from echod.memory.redact import redact_entry

NO_ID_CHANGES: Mapping[str, str] = MappingProxyType({})
_NO_EARLIER: Mapping[str, Collection[EntrySignature]] = MappingProxyType({})

_DIGEST_LENGTH = 16
_MAX_CLEAN_TEXTS = 32_768
"""Entries that are known to have no secret; three megabytes. A file is inspected several times for each change of one
entry, and redaction takes most of the time. The largest file that is read has about so many."""

_clean_texts: Final[set[bytes]] = set()


class EntrySignature(NamedTuple):
    """Digests of an entry's title, date, source and body; `body` is empty for an entry without one."""

    title: str
    day: str
    source: str
    body: str

    @property
    def id_parts(self) -> tuple[str, str, str]:
        """The digests of the values that the entry's id is made from."""
        return self.title, self.day, self.source


class PresentEntry(NamedTuple):
    """An entry that is in a memory file now."""

    id: str
    layer: Layer | None
    signature: EntrySignature


def present_entries(role: str, document: Document) -> tuple[PresentEntry, ...]:
    """Return the entries of a role's memory file in file order."""
    pairs = zip(entry_ids(role, document), document.blocks, strict=True)
    return tuple(
        PresentEntry(entry_id, block.entry.layer, entry_signature(block))
        for entry_id, block in pairs
        if entry_id is not None and block.entry is not None
    )


def entry_signature(block: Block) -> EntrySignature:
    """Return the signature by which an entry can be recognised later. An opaque block is a `ValueError`."""
    redacted = _redacted_text(block.text)
    if redacted != block.text and (plain := parse_block(redacted)).entry is not None:
        block = plain
    if block.entry is None:
        raise ValueError("an opaque block has no signature")
    _, title, day, source = block_key(block)
    body = block.body.replace("\r\n", "\n")
    return EntrySignature(_digest(title), _digest(day), _digest(source), _digest(body) if body.strip() else "")


def _redacted_text(text: str) -> str:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).digest()
    if digest in _clean_texts:
        return text
    redacted = redact_entry(text).text
    if redacted == text:
        if len(_clean_texts) >= _MAX_CLEAN_TEXTS:
            _clean_texts.clear()
        _clean_texts.add(digest)
    return redacted


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


def match_entries(
    previous: Mapping[str, EntrySignature | None],
    removed: Mapping[str, EntrySignature | None],
    current: Mapping[str, EntrySignature],
    id_changes: Mapping[str, str] = NO_ID_CHANGES,
    earlier: Mapping[str, Collection[EntrySignature]] = _NO_EARLIER,
) -> Mapping[str, str]:
    """Match a file's entries with known ones: current id -> previous id.

    Both ids are equal for most entries, and no id occurs twice on either side. All pairs hold at once, because two
    entries can have exchanged their ids.

    `previous` are the entries at the last inspection, `removed` those that left the file before; None where only the id
    is known. `id_changes` (previous id -> current id, from the job that changed the file) takes precedence over
    signatures. `earlier` are the signatures that previous and removed entries had before their last one.
    """
    unmatched = dict(current)
    in_file, returning = _Matcher(dict(previous), unmatched), _Matcher(dict(removed), unmatched)
    for previous_id, entry_id in id_changes.items():
        in_file.match(previous_id, entry_id)
    for pairs in (in_file, returning):
        pairs.match_unchanged()
        pairs.match_identical()
    for pairs in (in_file, returning):
        pairs.match_earlier(earlier)
    in_file.match_edited(previous, current)
    in_file.match_unique(lambda signature: signature.id_parts)
    in_file.match_same_ids()
    returning.match_same_ids()
    return {**in_file.matches, **returning.matches}


class _Matcher:
    """Pairs of a previous and a current entry. Matched entries are excluded from the search.

    `unmatched` are the current entries without a partner. Two matchers may share them.
    """

    def __init__(self, previous: dict[str, EntrySignature | None], unknown: dict[str, EntrySignature]) -> None:
        self.matches: dict[str, str] = {}
        self.unmatched = unknown
        self._previous = previous

    def match(self, previous_id: str, current_id: str) -> None:
        if previous_id in self._previous and current_id in self.unmatched:
            del self._previous[previous_id], self.unmatched[current_id]
            self.matches[current_id] = previous_id

    def match_unchanged(self) -> None:
        for entry_id, signature in list(self.unmatched.items()):
            if self._previous.get(entry_id) == signature:
                self.match(entry_id, entry_id)

    def match_same_ids(self) -> None:
        for entry_id in list(self.unmatched):
            self.match(entry_id, entry_id)

    def match_identical(self) -> None:
        """Match entries with equal signatures. They are interchangeable, so their number does not matter."""
        candidates = self._group_by(lambda signature: signature)
        for entry_id, signature in sorted(self.unmatched.items(), key=lambda item: item[0]):
            if candidates[signature]:
                self.match(candidates[signature].pop(0), entry_id)

    def match_earlier(self, earlier: Mapping[str, Collection[EntrySignature]]) -> None:
        """Match entries with a signature that exactly one previous entry had before: a stale writer put it back."""
        candidates: defaultdict[EntrySignature, list[str]] = defaultdict(list)
        for previous_id in self._previous.keys() & earlier.keys():
            for signature in earlier[previous_id]:
                candidates[signature].append(previous_id)
        for entry_id, signature in sorted(self.unmatched.items(), key=lambda item: item[0]):
            if len(candidates[signature]) == 1:
                self.match(candidates[signature][0], entry_id)

    def match_unique(self, key_of: Callable[[EntrySignature], Hashable]) -> None:
        """Match entries with equal `key_of` where exactly one on each side has that key."""
        candidates = self._group_by(key_of)
        counts = Counter(key_of(signature) for signature in self.unmatched.values())
        for entry_id, signature in list(self.unmatched.items()):
            kind = key_of(signature)
            if counts[kind] == len(candidates[kind]) == 1:
                self.match(candidates[kind][0], entry_id)

    def match_edited(self, before: Mapping[str, EntrySignature | None], after: Mapping[str, EntrySignature]) -> None:
        """Match entries whose body is unique on both sides and that differ in one of title, date and source.

        Recurring tasks are reported in the same words on another day from another workflow. Those are two entries. And
        if the previous id still belongs to an entry, that entry is the edited one.
        """
        bodies = [Counter(x.body for x in side.values() if x is not None) for side in (before, after)]
        by_body = self._group_by(lambda signature: signature.body)
        for entry_id, signature in list(self.unmatched.items()):
            body = signature.body
            if not body or any(count[body] != 1 for count in bodies) or not by_body[body]:
                continue
            previous_id = by_body[body][0]
            old = self._previous.get(previous_id)
            if old is None or previous_id in self.unmatched:
                continue
            if sum(a != b for a, b in zip(old.id_parts, signature.id_parts, strict=True)) == 1:
                self.match(previous_id, entry_id)

    def _group_by(self, key_of: Callable[[EntrySignature], Hashable]) -> defaultdict[Hashable, list[str]]:
        grouped: defaultdict[Hashable, list[str]] = defaultdict(list)
        for entry_id, signature in sorted(self._previous.items(), key=lambda item: item[0]):
            if signature is not None:
                grouped[key_of(signature)].append(entry_id)
        return grouped


NEW_NAMES: Final[Mapping[str, str]] = {
    "echo-detector": "mimic-detector",
    "orphan-finder": "wraith-finder",
    "forge-oracle": "ember-oracle",
    "lore-seeker": "practice-seeker",
    "realm-analyst": "repo-surveyor",
    "chronicle-miner": "git-miner",
    "Lore Keeper": "Knowledge Keeper",
    "rune-circle": "roundtable-circle",
    "codex-scholar": "lore-scholar",
    "rune:cleanup": "rune:rest",
    "rune:plan": "rune:devise",
    "rune:review": "rune:appraise",
    "rune:work": "rune:strive",
    "Runebearers": "Ashes",
    "Runebearer": "Ash",
    "runebearers": "ashes",
    "runebearer": "ash",
    "max_runebearers": "max_ashes",
    "max_tarnished": "max_ashes",
    "disable_runebearers": "disable_ashes",
    "disable_tarnished": "disable_ashes",
    "runebearer-guide": "ash-guide",
    "tarnished-guide": "ash-guide",
    "Elden Lord": "Tarnished",
    "rune-config.yml": "talisman.yml",
    "--skip-forge": "--no-forge",
    "skip_forge": "no_forge",
    "Task tool": "Agent tool",
    "utility_crew": "artifact_extraction",
    "todos_per_worker": "tasks_per_worker",
}
"""Old name -> new name. General words that were renamed too, such as "spawn" and "the lead", are no names."""

NEW_PATHS: Final[Mapping[str, str]] = {
    ".claude/echoes": ".rune/echoes",
    ".claude/arc": ".rune/arc",
    ".claude/talisman.yml": ".rune/talisman.yml",
}
"""Old path -> new path, for entries in a store that has moved."""

_AMBIGUOUS: Final = lazy_pattern(r"(?<![\w-])Tarnished(?![\w-])")
_AMBIGUOUS_UNTIL: Final = date(2026, 2, 13)
_NAMES: Final = "|".join(re.escape(name) for name in sorted(NEW_NAMES, key=len, reverse=True))
_PATHS: Final = "|".join(re.escape(path) for path in sorted(NEW_PATHS, key=len, reverse=True))
_IN_SOURCE: Final = lazy_pattern(rf"(?<![\w.:-])(?P<name>{_NAMES})(?![\w-])(?!\.\w)")
_IN_EVIDENCE: Final = lazy_pattern(rf"(?<![\w./:-])(?P<name>{_NAMES})(?![\w/-])(?!\.\w)")
_COMMAND_IN_EVIDENCE: Final = lazy_pattern(
    r"(?<![\w./:-])/(?P<name>rune:(?:cleanup|plan|review|work))(?![\w/-])(?!\.\w)"
)
_PATH: Final = lazy_pattern(rf"(?<![\w./-])(?P<name>{_PATHS})(?![\w-])(?!\.\w)")


class NameChange(NamedTuple):
    """A name that is replaced in a field of an entry."""

    field: str
    old: str
    new: str


class RenamedEntry(NamedTuple):
    """An entry whose metadata changes: its ids before and after, its block before and after, and the names."""

    old_id: str
    new_id: str
    before: Block
    after: Block
    changes: tuple[NameChange, ...]


class RenamedDocument(NamedTuple):
    """A memory file with new names.

    Attributes:
        document: the file; the same one if nothing changes.
        entries: the entries that change.
        current: the number of entries that do not change.
        ambiguous: ids of the entries with a name whose meaning depends on a day that they do not show.
    """

    document: Document
    entries: tuple[RenamedEntry, ...]
    current: int
    ambiguous: tuple[str, ...]


def rename_document(role: str, document: Document, *, in_new_layout: bool) -> RenamedDocument:
    """Return a memory file with the present names. Paths change too if it is in the new layout."""
    ids = entry_ids(role, document)
    renamed = [_rename_block(block, in_new_layout=in_new_layout) for block in document.blocks]
    after = document.with_blocks(block for block, _ in renamed)
    new_ids = entry_ids(role, after)
    rows = list(zip(ids, new_ids, document.blocks, renamed, strict=True))
    entries = tuple(
        RenamedEntry(old, new, before, block, changes)
        for old, new, before, (block, changes) in rows
        if old is not None and new is not None and changes
    )
    ambiguous = tuple(old for old, _, block, _ in rows if old is not None and _is_ambiguous(block.entry))
    count = sum(identity is not None for identity in ids)
    return RenamedDocument(after if entries else document, entries, count - len(entries), ambiguous)


def _rename_block(block: Block, *, in_new_layout: bool) -> tuple[Block, tuple[NameChange, ...]]:
    """Return a block with the present names, and the changes. It stays as it is if its meaning would change."""
    found: list[NameChange] = []
    after = block
    for name, change in (("source", with_source), ("evidence", with_evidence)):
        field = _first_field(after, name)
        if field is None:
            continue
        value, changes = _rename_value(name, field.value, in_new_layout=in_new_layout)
        if changes:
            after = change(after, value)
            found += changes
    if found and not _has_same_meaning(block, after):
        return block, ()
    return after, tuple(found)


def _has_same_meaning(before: Block, after: Block) -> bool:
    one, other = before.entry, after.entry
    if one is None or other is None:
        return False
    same = (one.form, one.title, one.layer, one.heading_date, len(one.fields))
    return before.body == after.body and same == (
        other.form, other.title, other.layer, other.heading_date, len(other.fields)
    )  # fmt: skip


def _first_field(block: Block, name: str) -> Field | None:
    return next((field for field in block.entry.fields if field.name == name), None) if block.entry else None


def _rename_value(name: str, value: str, *, in_new_layout: bool) -> tuple[str, list[NameChange]]:
    patterns = [_IN_SOURCE] if name == "source" else [_IN_EVIDENCE, _COMMAND_IN_EVIDENCE]
    spans = list(_find(patterns, value, NEW_NAMES))
    if in_new_layout:
        spans += _find([_PATH], value, NEW_PATHS)
    changes: list[NameChange] = []
    pieces: list[str] = []
    position = 0
    for start, end, new in sorted(spans):
        if start < position:  # a path within a name
            continue
        changes.append(NameChange(name, value[start:end], new))
        pieces += (value[position:start], new)
        position = end
    return "".join([*pieces, value[position:]]), changes


def _find(patterns: list[re.Pattern[str]], value: str, new_names: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
    for pattern in patterns:
        for match in pattern.finditer(value):
            yield *match.span("name"), new_names[match["name"]]


def _is_ambiguous(entry: Entry | None) -> bool:
    if entry is None or (entry.heading_date is not None and entry.heading_date > _AMBIGUOUS_UNTIL):
        return False
    values = (field.value for field in entry.fields if field.name in ("source", "evidence"))
    return any(_AMBIGUOUS.search(value) for value in values)
