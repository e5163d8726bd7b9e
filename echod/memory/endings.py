"""Whether what is open in a text is ever closed: looked up, never searched twice.

Without this, a file of nothing but opened fences would be read to its end once for each of them.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from echod.memory.commonmark import FENCE_ENDS, Fence, Html


class Endings:
    """All lines of a text that can close a fence or an HTML block."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._fences: dict[str, tuple[list[int], list[int]]] = {}
        self._last: dict[re.Pattern[str], int] = {}

    def closes(self, leaf: Fence | Html, position: int) -> bool:
        """Whether a line that closes `leaf` stands anywhere from `position` on."""
        if isinstance(leaf, Fence):
            offsets, longest_from = self._fence_ends(leaf.mark)
            index = bisect_left(offsets, position)
            return index < len(offsets) and longest_from[index] >= leaf.length
        return leaf.ends is None or self._last_end(leaf.ends) >= position

    def _fence_ends(self, mark: str) -> tuple[list[int], list[int]]:
        """The offsets of all lines that could close a fence of this mark, and the longest run from each on."""
        if not self._fences:
            self._fences = {"`": ([], []), "~": ([], [])}
            for line in FENCE_ENDS.finditer(self._text):
                offsets, lengths = self._fences[line[1][0]]
                offsets.append(line.start())
                lengths.append(len(line[1]))
            for _, lengths in self._fences.values():
                for index in range(len(lengths) - 2, -1, -1):
                    lengths[index] = max(lengths[index], lengths[index + 1])
        return self._fences[mark]

    def _last_end(self, pattern: re.Pattern[str]) -> int:
        if pattern not in self._last:
            self._last[pattern] = max((end.start() for end in pattern.finditer(self._text)), default=-1)
        return self._last[pattern]
