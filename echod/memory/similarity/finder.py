"""Finds among many learnings the one that a new one duplicates, without comparing it with all of them.

Learnings that are one name the same files, and their titles share most of their words. So whoever misses the few rarest
words of a title can be passed over unseen; that misses nobody. What is one learning is told in `compare`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator
from math import ceil

from echod.memory.similarity.compare import DEFAULT_THRESHOLDS, Sketch, Thresholds, compare_sketches, titles_agree

_CROWD = 128
"""So many are compared with one learning at most. Where thousands differ in a number alone, more would take for ever;
a duplicate that is missed then costs lines, and nothing else."""

_NO_WORD = ""
_Posting = tuple[frozenset[str], str]


class Finder:
    """Learnings by their place: a number that whoever adds them gives them, higher for each."""

    def __init__(self, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> None:
        self._thresholds = thresholds
        self._sketches: dict[int, Sketch] = {}
        self._exact: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
        self._by_word: defaultdict[_Posting, list[int]] = defaultdict(list)

    def add(self, place: int, learning: Sketch) -> None:
        """Take up a learning, to be found from now on."""
        self._sketches[place] = learning
        self._exact[learning.exact_form].append(place)
        for word in learning.title_terms or {_NO_WORD}:
            self._by_word[learning.files, word].append(place)

    def find(self, learning: Sketch, unlike: Container[int] = ()) -> int | None:
        """The place of the learning that this one duplicates: exactly, else the most similar, else the first of them.

        Args:
            learning: the new one.
            unlike: places that are no duplicates of it unless they say exactly the same.
        """
        if exact := self._exact.get(learning.exact_form):
            return exact[0]
        found: list[tuple[float, float, int]] = []
        for place in self._candidates(learning):
            other = self._sketches[place]
            if place in unlike or not titles_agree(learning, other, self._thresholds):
                continue
            alike = compare_sketches(learning, other, self._thresholds)
            if alike.duplicate:
                found.append((-alike.title, -alike.body, place))
        return min(found)[2] if found else None

    def _candidates(self, learning: Sketch) -> Iterator[int]:
        words = learning.title_terms or {_NO_WORD}
        postings = sorted(
            (len(places), word) for word in words if (places := self._by_word.get((learning.files, word)))
        )
        unheard = len(words) - len(postings)
        # Two titles that agree cannot differ in more of one's words than this.
        rarest = len(words) - ceil(self._thresholds.title * len(words) - 1e-9) + 1 - unheard
        seen: set[int] = set()
        for _, word in postings[: max(rarest, 0)]:
            for place in self._by_word[learning.files, word]:
                if place not in seen:
                    if len(seen) == _CROWD:
                        return
                    seen.add(place)
                    yield place
