"""What an entry puts into a knowledge block: its points in few words, its references, and what it is about.

A knowledge block is read back without loss: its points are what it says already, and stay as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from echod.memory.identity import normalise_title
from echod.memory.knowledge.references import references_of
from echod.memory.knowledge.sentences import plain, shortened, statement
from echod.memory.knowledge.text import learnings
from echod.memory.layers import Layer
from echod.memory.model import Block, Entry, Form
from echod.memory.similarity import bare_title, files_in
from echod.memory.similarity.words import fold, stem, words

CAPACITY = 1000
"""Characters of the points of one block, about 250 tokens; what holds more is a topic of its own."""

MOST_LINES = 5
"""Lines of a knowledge block."""

MARK = "Knowledge: "
"""What the title of a knowledge block begins with."""

SEPARATOR = "; "
"""Stands between references."""

NO_EVIDENCE = "none recorded"

_TITLE_LIMIT = 100  # characters
_POINT_LIMIT = 300
_DATE = re.compile(r"[\[(]?\d{4}-\d{2}-\d{2}[\])]?")
_DONE = re.compile(r"task completed: *", re.IGNORECASE)
_COMMON = frozenset(
    stem(match[0])
    for match in re.finditer(
        r"\w+",
        """
        a an and are as at be but by can do for from has have how if in into is it its no not of on only or our out
        should so that the their them then there this to use used using via was we what when where which with you your
        analysis arc audit finding findings fix implementation insights learning learnings memory patterns plan report
        research review session task update
        """,
    )
)


@dataclass(frozen=True, slots=True)
class Material:
    """What goes into a knowledge block.

    Attributes:
        title: of the entry, or the topic of a knowledge block.
        day: when it was last verified.
        points: what it says, a line each; with their own titles (`*title*: ...`) where they come from several entries.
        references: every one that must be kept.
        files: the files that it refers to, without line numbers.
        words: the words of its titles that tell topics apart.
        compressed: it is a knowledge block.
    """

    title: str
    day: date
    points: tuple[str, ...]
    references: tuple[str, ...]
    files: frozenset[str]
    words: frozenset[str]
    compressed: bool

    @property
    def size(self) -> int:
        """Characters of the points."""
        return sum(map(len, self.points))

    @property
    def titled_points(self) -> tuple[str, ...]:
        """The points as they stand among those of other entries: each says what it is about."""
        if any(point.startswith("*") for point in self.points):
            return self.points
        said = " ".join(self.points)
        return (said if said == self.title else f"*{self.title}*: {said}",)


def is_knowledge(block: Block) -> bool:
    """Whether a block is a knowledge block as `blocks` writes them, and as short as those are."""
    entry = block.entry
    return (
        entry is not None
        and entry.form is Form.LAYER_HEADING
        and entry.layer is Layer.INSCRIBED
        and entry.title.startswith(MARK)
        and len(block.text.rstrip().split("\n")) <= MOST_LINES
    )


def material_of(block: Block, entry: Entry, day: date) -> Material:
    """What the entry of a block puts into a knowledge block; `day` is the day it was last verified."""
    body = block.text[entry.body.start : entry.body.end]
    compressed = is_knowledge(block)
    if compressed:
        title = entry.title.removeprefix(MARK)
        points = tuple(line.removeprefix("- ").rstrip() for line in body.split("\n") if line.strip())
        evidence = " ".join((entry.evidence or "").split())
        references = () if evidence == NO_EVIDENCE else tuple(dict.fromkeys(evidence.split(SEPARATOR)))
        about = " ".join([title, *re.findall(r"\*([^*]+)\*: ", body)])
    else:
        title = tidy_title(entry.title)
        points = _points(title, body)
        references = references_of(entry, body)
        about = title
    return Material(
        title=title,
        day=day,
        points=points,
        references=references,
        # A file name without its folder (`README.md`) stands for too many files to tell topics apart.
        files=frozenset(name for name in files_in(" ".join(references)) if "/" in name),
        words=topic_words(about),
        compressed=compressed,
    )


def topic_words(title: str) -> frozenset[str]:
    """The words of a title that say what it is about, without endings."""
    found = (stem(word) for word in words(fold(title)))
    return frozenset(word for word in found if word not in _COMMON and not word.isdigit())


def tidy_title(title: str) -> str:
    """A title as it stands in a knowledge block: no dates, no marks, not too long."""
    bare = plain(_DATE.sub("", bare_title(title))).strip(" -:\u2013\u2014#")
    return shortened(bare or "untitled", _TITLE_LIMIT)


def _points(title: str, body: str) -> tuple[str, ...]:
    """What the body says, as much as a block can hold: one statement of each learning, without repeating the title."""
    said = normalise_title(title)
    points: list[str] = []
    left = CAPACITY
    for learning in learnings(body):
        point = shortened(statement(learning), _POINT_LIMIT)
        if normalise_title(_DONE.sub("", point)) == said:
            continue
        if point and points and len(point) > left:
            break
        if point and point not in points:
            points.append(point)
            left -= len(point)
    return tuple(points) or (title,)
