"""A memory file while prune plans it: its present blocks, lines and words, and the change of each entry."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from echod.memory.document import count_lines
from echod.memory.identity import block_key
from echod.memory.model import Block, Document, Layer
from echod.memory.policy.scoring import NOISE_LAYERS, EntryStatus
from echod.memory.policy_model import PolicySettings, PruneAction, Rule

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
