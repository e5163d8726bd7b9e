"""Record observations: raise the count of a similar entry, and append the others.

A task that is done again adds no line. The text of an observation that is only counted goes to the archive, word for
word. One that is more specific than the entry it resembles is appended, so that the better text is in the file.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date
from typing import NamedTuple

from echod.memory.document import parse, parse_block
from echod.memory.edit import with_recurrence
from echod.memory.identity import block_key, entry_ids
from echod.memory.merge import round_trips
from echod.memory.model import Block, Document, Layer, Unreadable
from echod.memory.noise import NoiseItem, NoiseJudge, is_routine_summary, says_the_same, summarize_routine
from echod.memory.observations import Observation, UnwritableMemory, with_observations
from echod.memory.recurrence import add_recurrences


class RecordedObservations(NamedTuple):
    """A memory file with new observations."""

    data: bytes
    counted: tuple[Observation, ...]  # observations that only raised a count
    replaced: tuple[Block, ...]  # entries whose text changed, as they were


def record_observations(
    role: str, memory: bytes, observations: Sequence[Observation], pinned: Collection[str]
) -> RecordedObservations | UnwritableMemory:
    """Return the memory file with these observations. Entries with a `pinned` id are not changed."""
    document = parse(memory)
    if isinstance(document, Unreadable):
        return UnwritableMemory(document.reason)
    counts = _Counts(role, document, pinned, observations)
    counted = tuple(observation for observation in observations if counts.count(observation))
    counted_document = counts.document
    if not round_trips(counted_document):
        counted, counted_document = (), document
    new = [observation for observation in observations if observation not in counted]
    data = with_observations(counted_document.render(), new) if new else counted_document.render()
    if isinstance(data, UnwritableMemory):
        return data
    return RecordedObservations(data, counted, counts.replaced if counted else ())


class _Counts:
    """Counts observations in the entries of a file."""

    def __init__(
        self, role: str, document: Document, pinned: Collection[str], observations: Sequence[Observation]
    ) -> None:
        self.document = document
        self.replaced: tuple[Block, ...] = ()
        keys = Counter(block_key(block) for block in document.blocks)
        items = [
            NoiseItem(index, block, block.entry, block.entry.heading_date or date.min)
            for index, (block, entry_id) in enumerate(zip(document.blocks, entry_ids(role, document), strict=True))
            if block.entry is not None
            and block.entry.layer is Layer.OBSERVATIONS
            and entry_id not in pinned
            and keys[block_key(block)] == 1
        ]
        self._summary = next((item for item in items if is_routine_summary(item)), None)
        self._by_key: defaultdict[tuple[object, ...], list[NoiseItem]] = defaultdict(list)
        for item in items:
            self._by_key[item.key].append(item)
        self._candidates: dict[str, NoiseItem] = {}
        if items:
            for number, observation in enumerate(observations, start=len(document.blocks)):
                block = parse_block(observation.text)
                if block.entry is not None:
                    day = block.entry.heading_date or date.min
                    self._candidates[observation.key] = NoiseItem(number, block, block.entry, day)
        self._judge = NoiseJudge([*items, *self._candidates.values()])

    def count(self, observation: Observation) -> bool:
        """Raise the count of the entry that is the same as an observation. False if there is none."""
        new = self._candidates.get(observation.key)
        if new is None:
            return False
        value = self._judge.specificity(new).value
        for position, item in enumerate(self._by_key[new.key]):
            if is_routine_summary(item) or not says_the_same(item, new, self._judge):
                continue
            if item.source_field is None or value > self._judge.specificity(item).value:
                return False
            parts = [(item.workflow, item.recurrence), (new.workflow, new.recurrence)]
            counted = self._replace(item, with_recurrence(item.block, add_recurrences(parts)))
            if counted is not None:
                self._by_key[new.key][position] = counted
            return counted is not None
        if self._summary is not None and not value:
            counted = self._replace(self._summary, summarize_routine([self._summary, new], self._summary))
            self._summary = counted or self._summary
            return counted is not None
        return False

    def _replace(self, item: NoiseItem, block: Block | None) -> NoiseItem | None:
        """Return the item with another block, which is in the document then; None if it would be another entry."""
        if block is None or block.entry is None or block_key(block) != block_key(item.block):
            return None
        if block.body != item.block.body:
            self.replaced += (item.block,)
        blocks = list(self.document.blocks)
        blocks[item.index] = block
        self.document = replace(self.document, blocks=tuple(blocks))
        return NoiseItem(item.index, block, block.entry, item.day)
