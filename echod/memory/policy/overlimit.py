"""Why a file is still over its limit after it was pruned, in lines, and whether another day will help."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from echod.memory.model import Document
from echod.memory.policy.lines import document_lines, room
from echod.memory.policy.model import Policy
from echod.memory.policy.scoring import Standing


@dataclass(frozen=True, slots=True)
class OverLimit:
    """The lines of a file that is over its limit, by what keeps them there.

    Attributes:
        lines: lines of the file.
        limit: its limit.
        protected: lines that only a person may remove: etched, notes, entries of an unknown layer, other text.
        pinned: lines of entries that are pinned.
        waiting: lines of entries whose turn comes on another day.
        stuck: lines that no rule can take out, because what stands around them would read differently.
    """

    lines: int
    limit: int
    protected: int
    pinned: int
    waiting: int
    stuck: int

    @property
    def another_day_helps(self) -> bool:
        """Whether pruning again tomorrow can make the file shorter. Without it the file waits for a person."""
        return self.waiting > 0

    @property
    def sentence(self) -> str:
        """All of it in words."""
        parts = (
            (self.protected, "only a person may remove (etched, notes, other text)"),
            (self.pinned, "are pinned"),
            (self.waiting, "are inscribed entries, of which a few may go each day"),
            (self.stuck, "hold a code block or comment that is never closed; close it"),
        )
        told = "; ".join(f"{lines} {'line' if lines == 1 else 'lines'} {what}" for lines, what in parts if lines)
        return f"{self.lines} lines, {self.lines - self.limit} over the limit of {self.limit}: {told}."


def over_limit(
    document: Document, after: Document, found: Sequence[Standing], taken: Container[int], policy: Policy
) -> OverLimit | None:
    """Why `after` is over its limit; None if it is not.

    Args:
        document: the file before.
        after: the file then.
        found: every entry before.
        taken: places of the entries that are no longer in the file.
        policy: the numbers.
    """
    lines = document_lines(after)
    if lines <= policy.memory_line_limit:
        return None
    kept = [index for index in range(len(document.blocks)) if index not in taken]
    size = {index: room(block.text) for index, block in zip(kept, after.blocks, strict=True)}
    staying = [s for s in found if s.index in size]
    pinned = sum(size[s.index] for s in staying if not s.protected and s.pinned_until is not None)
    stuck = sum(size[s.index] for s in staying if not s.protected and s.pinned_until is None and s.separates)
    waiting = sum(size[s.index] for s in staying if s.free)
    return OverLimit(
        lines=lines,
        limit=policy.memory_line_limit,
        protected=lines - pinned - stuck - waiting,
        pinned=pinned,
        waiting=waiting,
        stuck=stuck,
    )
