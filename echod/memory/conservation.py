"""The law that every change set is held to: what was there before still stands somewhere afterwards.

Every block of every pre-image is in a post-image (an entry whose metadata was edited keeps what it is and its
learning), or stands verbatim in an archive text of the same change set; a redacted text counts as the text. The
bytes of etched, notes and opaque blocks stay as they are, and a file never becomes empty, unless a person asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from echod.memory.alignment import Key, content, heading, key
from echod.memory.document import Block, Document, Entry, Layer

Redacted = Callable[[str], Iterable[str]]
"""The forms a text may have after redaction (by file, by entry)."""

_PROTECTED = (Layer.ETCHED, Layer.NOTES)
_MARK = re.compile(r"\[REDACTED:[\w-]+\]")


class Broken(StrEnum):
    """What a change set would have broken."""

    LOST = "would be lost"
    TOUCHED = "is protected and would be changed"
    EMPTIED = "would become empty"


@dataclass(frozen=True, slots=True)
class Violation:
    """A block, named by its heading (or a file, where it would become empty), and what would happen to it."""

    broken: Broken
    heading: str


@dataclass(frozen=True, slots=True)
class Change:
    """One memory or knowledge file before and after."""

    before: Document
    after: Document


def violations(
    changes: Sequence[Change], archived: Iterable[str], *, redacted: Redacted, asked: bool
) -> tuple[Violation, ...]:
    """What the change would break; nothing in the good case.

    Args:
        changes: every file that is rewritten.
        archived: every text that the change set adds to an archive, quarantine or findings file.
        redacted: the forms a text may have after redaction.
        asked: a person asked for it; then protected blocks may change and a file may become empty, but nothing
            may be lost even so.
    """
    kept = _Kept([block for change in changes for block in change.after.blocks], archived, redacted)
    found = [Violation(Broken.LOST, heading(b)) for change in changes for b in change.before.blocks if not kept.has(b)]
    found += [
        Violation(Broken.LOST, "the text before the first heading")
        for change in changes
        if not (_preamble_stays(change, redacted) or kept.has_text(change.before.preamble))
    ]
    if not asked:
        for change in changes:
            found += _touched(change, redacted)
            if change.before.render().strip() and not change.after.render().strip():
                found.append(Violation(Broken.EMPTIED, "the file"))
    return tuple(found)


def missing_findings(blocks: Iterable[Block], kept: str, *, redacted: Redacted) -> tuple[Violation, ...]:
    """What of a consumed findings file does not stand in the text that is kept of it."""
    store = _Kept([], [kept], redacted)
    return tuple(Violation(Broken.LOST, heading(block)) for block in blocks if not store.has(block))


def redaction_of(kept: str, original: str) -> bool:
    """Whether `kept` is `original` with nothing but redacted spans replaced."""
    pieces = _MARK.split(kept)
    if len(pieces) == 1:
        return kept == original
    at = len(pieces[0])
    if not original.startswith(pieces[0]) or not original.endswith(pieces[-1]):
        return False
    for piece in pieces[1:-1]:
        found = original.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return at <= len(original) - len(pieces[-1])


class _Kept:
    """Everything that stands somewhere after the change."""

    def __init__(self, blocks: Iterable[Block], archived: Iterable[str], redacted: Redacted) -> None:
        self._redacted = redacted
        self._texts: set[str] = set()
        self._learnings: dict[Key, set[str]] = {}
        for block in blocks:
            self._texts.add(content(block))
            if block.entry is not None:
                self._learnings.setdefault(key(block), set()).add(_learning(block, block.entry))
        self._archived = "\n".join(text.replace("\r\n", "\n") for text in archived)

    def has(self, block: Block) -> bool:
        text = content(block)
        if self._stands(text) or any(map(self._stands, self._redacted(text))):
            return True
        if block.entry is None:
            return False
        learnings, learning = self._learnings.get(key(block), set()), _learning(block, block.entry)
        return learning in learnings or any(form in learnings for form in self._redacted(learning) if learnings)

    def has_text(self, text: str) -> bool:
        plain = text.replace("\r\n", "\n").strip()
        return not plain or any(form in self._archived for form in (plain, *self._redacted(plain)))

    def _stands(self, text: str) -> bool:
        return text in self._texts or text in self._archived


def _preamble_stays(change: Change, redacted: Redacted) -> bool:
    before, after = (document.preamble.replace("\r\n", "\n").strip() for document in (change.before, change.after))
    return before == after or any(form.strip() == after for form in redacted(before))


def _touched(change: Change, redacted: Redacted) -> list[Violation]:
    after = {content(block) for block in change.after.blocks}
    protected = (b for b in change.before.blocks if _is_protected(b))
    return [
        Violation(Broken.TOUCHED, heading(block))
        for block in protected
        if content(block) not in after and not any(form in after for form in redacted(content(block)))
    ]


def _is_protected(block: Block) -> bool:
    return block.entry is None or block.entry.layer is None or block.entry.layer in _PROTECTED


def _learning(block: Block, entry: Entry) -> str:
    """The body of an entry, as it is compared."""
    return block.text[entry.body.start : entry.body.end].replace("\r\n", "\n").strip()
