"""Check the law for every change set: all text from before it exists somewhere after it.

Every block of every pre-image is in a post-image (an entry with edited metadata keeps its key and its learning), or
verbatim in an archive text of the same change set. A redacted text counts as the text. The bytes of etched, notes and
opaque blocks do not change, and a file never becomes empty, unless the user asked for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.identity import BlockKey, block_content, block_contents, block_heading, block_key
from echod.memory.model import Block, Document

RedactedForms = Callable[[str], Iterable[str]]
"""The forms a text may have after redaction (by file, by entry)."""

_REDACTION_MARK = lazy_pattern(r"\[REDACTED:[\w-]+\]")


class ViolationKind(StrEnum):
    """The kinds of damage that a change set would do."""

    LOST = "would be lost"
    PROTECTED_CHANGED = "is protected and would be changed"
    EMPTIED = "would become empty"


class Violation(NamedTuple):
    """A block, named by its heading (or a file that would become empty), and the damage to it."""

    kind: ViolationKind
    heading: str


class FileChange(NamedTuple):
    """One memory or knowledge file before and after."""

    before: Document
    after: Document


def find_violations(
    changes: Sequence[FileChange], archived_texts: Iterable[str], *, redacted_forms: RedactedForms, user_requested: bool
) -> tuple[Violation, ...]:
    """Return the violations of a change set, empty in the good case.

    `changes` are all files that are rewritten, `archived_texts` all texts that are added to an archive, quarantine or
    findings file. If the user asked for the change, protected blocks may change and a file may become empty, but still
    nothing may be lost.
    """
    after = [block for change in changes for block in change.after.blocks]
    retained = _RetainedContent(after, archived_texts, redacted_forms)
    missing = retained.find_missing(block for change in changes for block in change.before.blocks)
    violations = [Violation(ViolationKind.LOST, block_heading(block)) for block in missing]
    violations += [
        Violation(ViolationKind.LOST, "the text before the first heading")
        for change in changes
        if not (_is_preamble_retained(change, redacted_forms) or retained.contains_text(change.before.preamble))
    ]
    if not user_requested:
        for change in changes:
            violations += _find_changed_protected(change, redacted_forms)
            if change.before.render().strip() and not change.after.render().strip():
                violations.append(Violation(ViolationKind.EMPTIED, "the file"))
    return tuple(violations)


def shows_changes(before: Document, after: Document, visible: Document) -> bool:
    """Return whether a change from `before` to `after` was made in an ancestor of `visible`, which may be edited since.

    Every block that the change added or edited is visible, perhaps in a later version, and none that it removed. A
    change of the preamble alone does not show.
    """
    old, new = set(block_contents(before)), set(block_contents(after))
    present = set(block_contents(visible))
    if old == new or not present.isdisjoint(old - new):
        return False
    return not missing_additions(before, after, visible)


def missing_additions(before: Document, after: Document, visible: Document) -> tuple[Block, ...]:
    """Return the blocks that were added or edited from `before` to `after` and are not in `visible`.

    A block that is there in another version is not missing, unless that is the version before.
    """
    old, present = set(block_contents(before)), set(block_contents(visible))
    versions = {block_key(block) for block in visible.blocks if block_content(block) not in old}
    added = [block for block in after.blocks if block_content(block) not in old]
    return tuple(b for b in added if block_content(b) not in present and block_key(b) not in versions)


def _is_preamble_retained(change: FileChange, redacted_forms: RedactedForms) -> bool:
    """Return whether every line above the first heading is still there, in order. Lines may be added."""
    before, after = (document.preamble.replace("\r\n", "\n").strip() for document in (change.before, change.after))
    if before == after:
        return True
    return any(_contains_lines(after, form.strip()) for form in (before, *redacted_forms(before)))


def _contains_lines(text: str, lines: str) -> bool:
    remaining = iter(text.split("\n"))
    return all(line in remaining for line in lines.split("\n") if line.strip())


def _find_changed_protected(change: FileChange, redacted_forms: RedactedForms) -> list[Violation]:
    after = set(block_contents(change.after))
    protected = (block for block in change.before.blocks if block.protected)
    return [
        Violation(ViolationKind.PROTECTED_CHANGED, block_heading(block))
        for block in protected
        if block_content(block) not in after and not any(form in after for form in redacted_forms(block_content(block)))
    ]


def find_missing_findings(
    blocks: Iterable[Block], retained: str, *, redacted_forms: RedactedForms
) -> tuple[Violation, ...]:
    """Return the parts of a consumed findings file that are not in the retained text of it."""
    missing = _RetainedContent([], [retained], redacted_forms).find_missing(blocks)
    return tuple(Violation(ViolationKind.LOST, block_heading(block)) for block in missing)


def is_redaction_of(text: str, original: str) -> bool:
    """Return whether `text` is `original` with only redacted spans replaced."""
    pieces = _REDACTION_MARK.split(text)
    if len(pieces) == 1:
        return text == original
    position = len(pieces[0])
    if not original.startswith(pieces[0]) or not original.endswith(pieces[-1]):
        return False
    for piece in pieces[1:-1]:
        start = original.find(piece, position)
        if start < 0:
            return False
        position = start + len(piece)
    return position <= len(original) - len(pieces[-1])


class _RetainedContent:
    """All text that exists somewhere after the change."""

    def __init__(self, blocks: Iterable[Block], archived: Iterable[str], redacted_forms: RedactedForms) -> None:
        self._redacted_forms = redacted_forms
        self._texts: set[str] = set()
        self._learnings: dict[BlockKey, set[str]] = {}
        for block in blocks:
            self._texts.add(block_content(block))
            if block.entry is not None:
                self._learnings.setdefault(block_key(block), set()).add(_learning_text(block))
        self._archived = "\n".join(text.replace("\r\n", "\n") for text in archived)

    def find_missing(self, blocks: Iterable[Block]) -> list[Block]:
        """Return the blocks that exist nowhere, neither verbatim nor redacted."""
        absent = self._exclude_retained((block, (block_content(block),)) for block in blocks)
        absent = self._exclude_retained((block, tuple(self._redacted_forms(block_content(block)))) for block in absent)
        return [block for block in absent if not self._has_learning(block)]

    def contains_text(self, text: str) -> bool:
        plain = text.replace("\r\n", "\n").strip()
        return not plain or any(form in self._archived for form in (plain, *self._redacted_forms(plain)))

    def _exclude_retained(self, forms: Iterable[tuple[Block, tuple[str, ...]]]) -> list[Block]:
        """Return the blocks that are not retained. One search serves all, because archive and blocks may be large."""
        remaining = [(block, texts) for block, texts in forms if not any(text in self._texts for text in texts)]
        archived = find_whole_lines(self._archived, {text for _, texts in remaining for text in texts})
        return [block for block, texts in remaining if not any(text in archived for text in texts)]

    def _has_learning(self, block: Block) -> bool:
        learnings = self._learnings.get(block_key(block))
        if block.entry is None or learnings is None:
            return False
        learning = _learning_text(block)
        return learning in learnings or any(form in learnings for form in self._redacted_forms(learning))


def _learning_text(block: Block) -> str:
    return block.body.replace("\r\n", "\n").strip()


def find_whole_lines(text: str, candidates: AbstractSet[str]) -> frozenset[str]:
    """Return the `candidates` that are in a text as whole lines, in one pass regardless of their number.

    Candidates have no spaces at their ends. Spaces at the ends of lines do not matter where a candidate begins and
    ends.
    """
    lengths: defaultdict[str, set[int]] = defaultdict(set)
    for candidate in candidates:
        lengths[candidate.partition("\n")[0].rstrip()].add(len(candidate))
    present: set[str] = set()
    start = 0
    while lengths and start < len(text):
        end = _end_of_line(text, start)
        for length in lengths.get(text[start:end].rstrip(), ()):
            piece, after = text[start : start + length], start + length
            if piece in candidates and not text[after : _end_of_line(text, after)].strip():
                present.add(piece)
        start = end + 1
    return frozenset(present)


def _end_of_line(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end
