"""The file while a plan is made: what was taken so far, and whether it fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from echod.memory.model import Block, Document
from echod.memory.policy.candidates import Leaving, noise_budget
from echod.memory.policy.condense import condensed
from echod.memory.policy.lines import document_lines, room
from echod.memory.policy.model import Policy
from echod.memory.policy.rules import Action
from echod.memory.policy.scoring import NOISE_LAYERS, Standing


class Desk:
    """Takes entries out of a file, and counts lines."""

    def __init__(self, document: Document, standings: Sequence[Standing], policy: Policy, archive: str) -> None:
        self.taken: dict[int, Leaving] = {}
        self.condensed: dict[int, Block] = {}
        self._document = document
        self._archive = archive
        self._limit = policy.memory_line_limit
        self._budget = noise_budget(policy)
        self._lines = document_lines(document)
        self._noise = sum(s.room for s in standings if s.layer in NOISE_LAYERS)

    @property
    def lines(self) -> int:
        """Lines of the file as it would be now."""
        return self._lines

    def is_over(self) -> bool:
        """Whether the file is over its limit as it would be now."""
        return self._lines > self._limit

    def is_noisy(self) -> bool:
        """Whether observations and traced entries take more than their budget."""
        return self._noise > self._budget

    def has(self, standing: Standing) -> bool:
        """Whether the entry still stands in the file."""
        return standing.index not in self.taken

    def take(self, leaving: Leaving) -> None:
        """Take an entry out."""
        standing = leaving.standing
        self.taken[standing.index] = leaving
        block = self.condensed.get(standing.index)
        self._lines -= room(block.text) if block else standing.room
        if standing.layer in NOISE_LAYERS:
            self._noise -= standing.room

    def spare_last(self) -> None:
        """Put back what was taken last, if nothing would be left of the file: an emptied file looks like a lost one."""
        if self.taken and not self.document().render().strip():
            _, leaving = self.taken.popitem()
            standing = leaving.standing
            block = self.condensed.get(standing.index)
            self._lines += room(block.text) if block else standing.room
            self._noise += standing.room if standing.layer in NOISE_LAYERS else 0

    def condense(self, leaving: Leaving) -> None:
        """Condense an entry, if that makes it shorter."""
        standing = leaving.standing
        block = condensed(standing.block, standing.id, self._archive)
        if block is not None:
            self.condensed[standing.index] = block
            self._lines += room(block.text) - standing.room

    def waiting(self, queue: Iterable[Leaving]) -> Iterable[Leaving]:
        """What of a queue still stands in the file, in its order."""
        return (leaving for leaving in queue if self.has(leaving.standing))

    def document(self) -> Document:
        """The file as it would be now."""
        blocks = enumerate(self._document.blocks)
        return Document(
            self._document.preamble,
            tuple(self.condensed.get(index, block) for index, block in blocks if index not in self.taken),
        )

    def action_of(self, standing: Standing) -> Action:
        """What becomes of an entry."""
        leaving = self.taken.get(standing.index)
        if leaving is not None:
            return leaving.action
        return Action.CONDENSE if standing.index in self.condensed else Action.KEEP
