"""The rule by which two learnings are one, and the numbers it goes by.

A learning duplicates another if their titles agree (without dates and the type word), their bodies agree, their
evidence names the same files or none on both sides, and nothing in them contradicts. Values in, numbers out; what is
done about a duplicate is told elsewhere (`consolidate`).

Finds among many learnings the one that a new one duplicates, without comparing it with all of them.

Learnings that are one name the same files, and their titles share most of their words. So whoever misses the few rarest
words of a title can be passed over unseen; that misses nobody. What is one learning is told in `compare`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil
from typing import NamedTuple

from echod.memory.findings.text import KINDS, read_title
from echod.memory.identity import normalise_title
from echod.memory.model import Block, Entry, Layer
from echod.memory.similarity.contradiction import Claims, claims, contradiction
from echod.memory.similarity.words import fold, jaccard, stem, with_plain_numbers, words

_BULLETS = re.compile(r"\s*(?:[-*+\u2022](?:[ \t]+|\n\s*|$))+")
_PATH = re.compile(
    r"(?<![\w.@+-])(?:(?:[\w.@~+-]+[/\\])*[\w.@+-]*\w\.[A-Za-z]\w{0,9}(?![\w/\\])"
    r"|(?:[\w.@~+-]+/){2,}[\w.@+-]*|[\w.@~+-]+/(?!\S))"
)
_QUOTED_PATH = re.compile(r"`((?=[^`\s/\\]*+[/\\])[^`\s]++|[A-Z][A-Za-z]*file|\.[\w.-]+)`")
_RUN = re.compile(r"[\w.@~+/\\-]++")
_LONGEST_PATH = 400  # characters; nobody names a file by more
_LINE_NUMBERS = re.compile(r"(?::\d[\d:,-]*|#L\d[\dL-]*)$")
_TITLES = 2_048
"""Titles that are remembered: for each finding that comes all of a memory are read, and are most of its sketch."""
_NO_PATHS = frozenset({"e.g", "i.e", "etc."})


class Learning(NamedTuple):
    """What of an entry or a finding says what was learned."""

    title: str
    body: str
    evidence: str | None
    layer: Layer | None


class Thresholds(NamedTuple):
    """How much of two titles and of two bodies must be shared, 0..1."""

    title: float = 0.8
    body: float = 0.5


DEFAULT_THRESHOLDS = Thresholds()


class Similarity(NamedTuple):
    """How alike two learnings are, in numbers, and whether they are one.

    Attributes:
        title: shared part of the titles' words, 0..1.
        body: shared part of the bodies' words, 0..1.
        evidence_agrees: both name the same files, or neither names any.
        contradiction: what differs in a way that forbids to take one for the other; None if nothing does or if the
            titles or bodies differ anyway.
        duplicate: the conclusion.
    """

    title: float
    body: float
    evidence_agrees: bool
    contradiction: str | None
    duplicate: bool


def learning_of(block: Block, entry: Entry) -> Learning:
    """The learning that an entry of a memory file holds."""
    title = f"{entry.kind}: {entry.title}" if entry.kind else entry.title
    return Learning(title, block.text[entry.body.start : entry.body.end], entry.evidence, entry.layer)


@dataclass(frozen=True)
class Sketch:
    """A learning that is compared with many: what is asked of it is read once, and only when it is asked.

    Reading it costs a hundred times what one comparison does.
    """

    learning: Learning

    @cached_property
    def title(self) -> str:
        """The title without dates and type word."""
        return bare_title(self.learning.title)

    @cached_property
    def title_terms(self) -> frozenset[str]:
        """The words of the title, without endings."""
        return _terms(self.title)

    @cached_property
    def body_terms(self) -> frozenset[str]:
        """The words of the body, without endings."""
        return _terms(self.learning.body)

    @cached_property
    def files(self) -> frozenset[str]:
        """The files that its evidence names."""
        return files_in(self.learning.evidence)

    @cached_property
    def claims(self) -> Claims:
        """What must not differ between it and another one."""
        return claims(self.title, _without_type(self.learning.body))

    @cached_property
    def plain_title(self) -> str:
        """The title as it is compared with others for being the very same, without case and marks."""
        return normalise_title(self.title)

    @cached_property
    def exact_form(self) -> tuple[str, str, str]:
        """What two learnings have in common if and only if they are exact duplicates (white space does not count)."""
        body = self.learning.body
        marks = _BULLETS.match(body)
        body = body[marks.end() :] if marks else body
        return self.plain_title, " ".join(body.split()), " ".join((self.learning.evidence or "").split())


def sketch(learning: Learning) -> Sketch:
    """What `compare_sketches` looks at."""
    return Sketch(learning)


def compare_sketches(one: Sketch, other: Sketch, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> Similarity:
    """How alike two learnings are. Symmetric; a learning is a duplicate of itself."""
    title = jaccard(one.title_terms, other.title_terms)
    body = jaccard(one.body_terms, other.body_terms)
    evidence_agrees = one.files == other.files
    alike = titles_agree(one, other, thresholds) and body >= thresholds.body and evidence_agrees
    reason = contradiction(one.claims, other.claims) if alike else None
    return Similarity(title, body, evidence_agrees, reason, alike and reason is None)


def titles_agree(one: Sketch, other: Sketch, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> bool:
    """Whether two titles are of one learning."""
    # The title of an observation is its task: another task is another observation, however alike they sound.
    if one.learning.layer is Layer.OBSERVATIONS or other.learning.layer is Layer.OBSERVATIONS:
        return one.plain_title == other.plain_title
    return jaccard(one.title_terms, other.title_terms) >= thresholds.title


@lru_cache(maxsize=_TITLES)
def bare_title(title: str) -> str:
    """A title without dates, layer word and type word; `redis: set timeouts` keeps its first word, it is no type."""
    read = read_title(title)
    return f"{read.kind}: {read.text}" if read.kind and not read.typed else read.text


def files_in(evidence: str | None) -> frozenset[str]:
    """The files that a piece of evidence names, without line numbers."""
    if not evidence:
        return frozenset()
    found = {match[1] for match in _QUOTED_PATH.finditer(evidence)}
    found |= {match[0] for match in _PATH.finditer(_RUN.sub(lambda run: run[0][:_LONGEST_PATH], evidence))}
    named = (_LINE_NUMBERS.sub("", path) for path in found if len(path) <= _LONGEST_PATH)
    paths = (path.replace("\\", "/").removeprefix("./").rstrip("/.,") for path in named)
    return frozenset(path for path in paths if path and path not in _NO_PATHS)


def _without_type(body: str) -> str:
    word, colon, rest = body.partition(":")
    return rest if colon and word.strip(" -*").casefold() in KINDS else body


def _terms(text: str) -> frozenset[str]:
    folded = with_plain_numbers(fold(text))
    found = frozenset(stem(word) for word in words(folded))
    # A text without a single word (an emoji, a line of signs) is compared by its characters.
    return found or frozenset(folded.replace(" ", ""))


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
