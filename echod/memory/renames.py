"""Rename agents, commands and paths of earlier versions of the workflow plugins in the metadata of entries.

Only the source and the evidence change, never the learning. All names are replaced in one pass, so that a new name is
never taken for an old one, and a second run changes nothing. A name counts only as a whole word: `rune:plan` is not in
`rune:planner`, and the names of teams (`rune-review-7`) never changed. In evidence a part of a path is no name, because
a path must keep leading to its file. Paths of the former layout have their own rows.

"Tarnished" meant a teammate for one day and the lead ever since. It is left alone, and reported where an entry is of
that time or has no date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Final, NamedTuple

from echod.memory.edit import with_evidence, with_source
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document, Entry, Field

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

_AMBIGUOUS: Final = re.compile(r"(?<![\w-])Tarnished(?![\w-])")
_AMBIGUOUS_UNTIL: Final = date(2026, 2, 13)
_NAMES: Final = "|".join(re.escape(name) for name in sorted(NEW_NAMES, key=len, reverse=True))
_PATHS: Final = "|".join(re.escape(path) for path in sorted(NEW_PATHS, key=len, reverse=True))
_IN_SOURCE: Final = re.compile(rf"(?<![\w.:-])(?P<name>{_NAMES})(?![\w-])(?!\.\w)")
_IN_EVIDENCE: Final = re.compile(rf"(?<![\w./:-])(?P<name>{_NAMES})(?![\w/-])(?!\.\w)")
_COMMAND_IN_EVIDENCE: Final = re.compile(r"(?<![\w./:-])/(?P<name>rune:(?:cleanup|plan|review|work))(?![\w/-])(?!\.\w)")
_PATH: Final = re.compile(rf"(?<![\w./-])(?P<name>{_PATHS})(?![\w-])(?!\.\w)")


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
