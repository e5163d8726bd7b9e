"""The law that every change set is held to: what was there before still stands somewhere afterwards.

Every block of every pre-image is in a post-image (an entry whose metadata was edited keeps what it is and its
learning), or stands verbatim in an archive text of the same change set; a redacted text counts as the text. The
bytes of etched, notes and opaque blocks stay as they are, and a file never becomes empty, unless a person asked.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import NamedTuple

from echod.memory.alignment import Key, content, heading, key
from echod.memory.model import Block, Document, Entry, Layer

Redacted = Callable[[str], Iterable[str]]
"""The forms a text may have after redaction (by file, by entry)."""

_PROTECTED = (Layer.ETCHED, Layer.NOTES)
_MARK = re.compile(r"\[REDACTED:[\w-]+\]")


class Broken(StrEnum):
    """What a change set would have broken."""

    LOST = "would be lost"
    TOUCHED = "is protected and would be changed"
    EMPTIED = "would become empty"


class Violation(NamedTuple):
    """A block, named by its heading (or a file, where it would become empty), and what would happen to it."""

    broken: Broken
    heading: str


class Change(NamedTuple):
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
    found = [Violation(Broken.LOST, heading(b)) for b in kept.missing(b for c in changes for b in c.before.blocks)]
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
    return tuple(Violation(Broken.LOST, heading(block)) for block in _Kept([], [kept], redacted).missing(blocks))


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

    def missing(self, blocks: Iterable[Block]) -> list[Block]:
        """Those blocks that stand nowhere, neither as they are nor redacted."""
        left = self._without_standing((block, (content(block),)) for block in blocks)
        left = self._without_standing((block, tuple(self._redacted(content(block)))) for block in left)
        return [block for block in left if not self._has_learning(block)]

    def has_text(self, text: str) -> bool:
        plain = text.replace("\r\n", "\n").strip()
        return not plain or any(form in self._archived for form in (plain, *self._redacted(plain)))

    def _without_standing(self, forms: Iterable[tuple[Block, tuple[str, ...]]]) -> list[Block]:
        """All at once, because an archive's text is long and so may the blocks be many."""
        wanted = [(block, texts) for block, texts in forms if not any(text in self._texts for text in texts)]
        archived = standing_in(self._archived, {text for _, texts in wanted for text in texts})
        return [block for block, texts in wanted if not any(text in archived for text in texts)]

    def _has_learning(self, block: Block) -> bool:
        learnings = self._learnings.get(key(block))
        if block.entry is None or learnings is None:
            return False
        learning = _learning(block, block.entry)
        return learning in learnings or any(form in learnings for form in self._redacted(learning))


def standing_in(text: str, wanted: AbstractSet[str]) -> frozenset[str]:
    """Those of the `wanted` texts that stand in a text as whole lines. One pass, however many they are.

    Args:
        text: where to look; blanks at the ends of its lines do not matter where a wanted text begins and ends.
        wanted: texts without blanks at their ends.
    """
    lengths: defaultdict[str, set[int]] = defaultdict(set)
    for one in wanted:
        lengths[one.partition("\n")[0].rstrip()].add(len(one))
    found: set[str] = set()
    start = 0
    while lengths and start < len(text):
        end = _end_of_line(text, start)
        for length in lengths.get(text[start:end].rstrip(), ()):
            piece, after = text[start : start + length], start + length
            if piece in wanted and not text[after : _end_of_line(text, after)].strip():
                found.add(piece)
        start = end + 1
    return frozenset(found)


def _end_of_line(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


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
