"""Compare two learnings, and find among many the one that a new learning duplicates.

A learning duplicates another if their titles agree (without dates and the type word), their bodies agree, their
evidence names the same files or none on both sides, and nothing in them contradicts. Values in, numbers out;
`consolidation` decides what happens to a duplicate.

`DuplicateFinder` does not compare a learning with all others. Duplicates name the same files, and their titles share
most of their words. A learning that has none of the few rarest words of a title can therefore be skipped, and no
duplicate is missed by that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.findings.text import KIND_WORDS, read_title
from echod.memory.identity import normalize_title
from echod.memory.model import Block, Entry, Layer
from echod.memory.similarity.contradiction import Assertions, extract_assertions, find_contradiction
from echod.memory.similarity.words import fold, jaccard, normalize_numbers, stem, tokenize
from echod.memory.text import PATH_GROUP

_BULLETS = lazy_pattern(r"\s*(?:[-*+\u2022](?:[ \t]+|\n\s*|$))+")
_SEGMENT = rf"(?:[\w.@~+$-]|{PATH_GROUP})+"
_PATH = lazy_pattern(
    rf"(?<![\w.@+-])(?:(?:{_SEGMENT}[/\\])*+(?:[\w.@+$-]|{PATH_GROUP})*(?:\w|{PATH_GROUP})\.[A-Za-z]\w{{0,9}}(?![\w/\\])"
    rf"|(?:{_SEGMENT}/){{2,}}(?:[\w.@+-]|{PATH_GROUP})*|{_SEGMENT}/(?!\S))"
)
_QUOTED_PATH = lazy_pattern(r"`((?=[^`\s/\\]*+[/\\])[^`\s]++|[A-Z][A-Za-z]*file|\.[\w.-]+)`")
_PATH_RUN = lazy_pattern(r"[\w.@~+$()\[\]{}/\\-]++")
_MAX_PATH_LENGTH = 400  # characters; a longer run is not a file name
_LINE_NUMBERS = lazy_pattern(r"(?::\d[\d:,-]*|#L\d[\dL-]*)$")
# Cached titles. Each new finding is compared with all of a memory, and titles are the largest part of that cost.
_TITLE_CACHE_SIZE = 2_048
_NOT_PATHS = frozenset({"e.g", "i.e", "etc."})
# The most learnings that are compared with one. Where thousands differ in a number alone, more would take too long. A
# duplicate that is missed then costs lines, and nothing else.
_MAX_CANDIDATES = 128
_NO_WORD = ""
_Posting = tuple[frozenset[str], str]


class Learning(NamedTuple):
    """The parts of an entry or a finding that carry the learning."""

    title: str
    body: str
    evidence: str | None
    layer: Layer | None


class SimilarityThresholds(NamedTuple):
    """The least shared part of two titles and of two bodies, 0..1."""

    title: float = 0.8
    body: float = 0.5


DEFAULT_THRESHOLDS = SimilarityThresholds()


class Similarity(NamedTuple):
    """How alike two learnings are, in numbers, and whether they are one."""

    title: float  # shared part of the titles' words, 0..1
    body: float  # shared part of the bodies' words, 0..1
    evidence_agrees: bool  # both name the same files, or neither names any
    # A difference that makes them two learnings; None without one, or if the titles or bodies differ anyway.
    contradiction: str | None
    duplicate: bool


@dataclass(frozen=True)
class LearningFeatures:
    """A learning that is compared with many: each feature is computed once, and only on first use.

    Computing them costs a hundred times as much as one comparison.
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
    def assertions(self) -> Assertions:
        """The statements that must not differ between it and another one."""
        return extract_assertions(self.title, _without_type(self.learning.body))

    @cached_property
    def normalized_title(self) -> str:
        """The title without case and marks, to be compared for equality."""
        return normalize_title(self.title)

    @cached_property
    def exact_key(self) -> tuple[str, str, str]:
        """A key that two learnings share if and only if they are exact duplicates (white space does not count)."""
        body = self.learning.body
        marks = _BULLETS.match(body)
        body = body[marks.end() :] if marks else body
        return self.normalized_title, " ".join(body.split()), " ".join((self.learning.evidence or "").split())


def features_of(learning: Learning) -> LearningFeatures:
    """Return the features that `compare_learnings` works on."""
    return LearningFeatures(learning)


def learning_of(block: Block, entry: Entry) -> Learning:
    """Return the learning of an entry in a memory file."""
    return Learning(entry.full_title, block.body, entry.evidence, entry.layer)


def compare_learnings(
    one: LearningFeatures, other: LearningFeatures, thresholds: SimilarityThresholds = DEFAULT_THRESHOLDS
) -> Similarity:
    """Return how alike two learnings are. Symmetric; a learning is a duplicate of itself."""
    title = jaccard(one.title_terms, other.title_terms)
    body = jaccard(one.body_terms, other.body_terms)
    evidence_agrees = one.files == other.files
    similar = titles_agree(one, other, thresholds) and body >= thresholds.body and evidence_agrees
    reason = find_contradiction(one.assertions, other.assertions) if similar else None
    return Similarity(title, body, evidence_agrees, reason, similar and reason is None)


def titles_agree(
    one: LearningFeatures, other: LearningFeatures, thresholds: SimilarityThresholds = DEFAULT_THRESHOLDS
) -> bool:
    """Return whether two titles are of one learning."""
    # The title of an observation is its task. Another task is another observation, however alike they sound.
    if one.learning.layer is Layer.OBSERVATIONS or other.learning.layer is Layer.OBSERVATIONS:
        return one.normalized_title == other.normalized_title
    return jaccard(one.title_terms, other.title_terms) >= thresholds.title


@lru_cache(maxsize=_TITLE_CACHE_SIZE)
def bare_title(title: str) -> str:
    """Return a title without dates, layer word and type word.

    `redis: set timeouts` keeps its first word, which is not a type.
    """
    parsed = read_title(title)
    return f"{parsed.kind}: {parsed.text}" if parsed.kind and not parsed.typed else parsed.text


def files_in(evidence: str | None) -> frozenset[str]:
    """Return the files that a piece of evidence names, without line numbers."""
    if not evidence:
        return frozenset()
    matches = {match[1] for match in _QUOTED_PATH.finditer(evidence)}
    matches |= {match[0] for match in _PATH.finditer(_PATH_RUN.sub(lambda run: run[0][:_MAX_PATH_LENGTH], evidence))}
    without_lines = (_LINE_NUMBERS.sub("", path) for path in matches if len(path) <= _MAX_PATH_LENGTH)
    paths = (path.replace("\\", "/").removeprefix("./").rstrip("/.,") for path in without_lines)
    return frozenset(path for path in paths if path and path not in _NOT_PATHS)


def _without_type(body: str) -> str:
    word, colon, rest = body.partition(":")
    return rest if colon and word.strip(" -*").casefold() in KIND_WORDS else body


def _terms(text: str) -> frozenset[str]:
    folded = normalize_numbers(fold(text))
    terms = frozenset(stem(word) for word in tokenize(folded))
    # A text without a single word (an emoji, a line of signs) is compared by its characters.
    return terms or frozenset(folded.replace(" ", ""))


class DuplicateFinder:
    """Learnings by position, a number that the caller gives each, in ascending order."""

    def __init__(self, thresholds: SimilarityThresholds = DEFAULT_THRESHOLDS) -> None:
        self._thresholds = thresholds
        self._features: dict[int, LearningFeatures] = {}
        self._exact: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
        self._by_word: defaultdict[_Posting, list[int]] = defaultdict(list)

    def add(self, position: int, learning: LearningFeatures) -> None:
        """Add a learning, to be found from now on."""
        self._features[position] = learning
        self._exact[learning.exact_key].append(position)
        for word in learning.title_terms or {_NO_WORD}:
            self._by_word[learning.files, word].append(position)

    def find(self, learning: LearningFeatures, excluded: Container[int] = ()) -> int | None:
        """Return the position of the learning that this one duplicates.

        An exact duplicate has precedence, then the most similar one, then the first of equals. `excluded` positions are
        not duplicates of it unless they are exactly equal.
        """
        if exact := self._exact.get(learning.exact_key):
            return exact[0]
        matches: list[tuple[float, float, int]] = []
        for position in self._candidates(learning):
            other = self._features[position]
            if position in excluded or not titles_agree(learning, other, self._thresholds):
                continue
            similarity = compare_learnings(learning, other, self._thresholds)
            if similarity.duplicate:
                matches.append((-similarity.title, -similarity.body, position))
        return min(matches)[2] if matches else None

    def _candidates(self, learning: LearningFeatures) -> Iterator[int]:
        words = learning.title_terms or {_NO_WORD}
        found = ((word, self._by_word.get((learning.files, word))) for word in words)
        postings = sorted((len(positions), word) for word, positions in found if positions)
        unknown_words = len(words) - len(postings)
        # Two titles that agree cannot differ in more of one's words than this.
        probes = len(words) - ceil(self._thresholds.title * len(words) - 1e-9) + 1 - unknown_words
        seen: set[int] = set()
        for _, word in postings[: max(probes, 0)]:
            for position in self._by_word[learning.files, word]:
                if position not in seen:
                    if len(seen) == _MAX_CANDIDATES:
                        return
                    seen.add(position)
                    yield position
