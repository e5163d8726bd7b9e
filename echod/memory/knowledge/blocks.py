"""Knowledge blocks: what is left of the entries of one topic, in three to five lines.

A heading, the references of all of them, and their points on one to three lines. It is an ordinary entry in the form
with the layer in the heading, so every reader of memory files understands it.

What an entry puts into a knowledge block: its points in few words, its references, and what it is about.

A knowledge block is read back without loss: its points are what it says already, and stay as they are.

Which entries belong to one topic: they refer to the same file, or their titles share most of their words.

The groups do not depend on the order in which the entries come, and no group is larger than one block can hold.

Adding knowledge blocks to a knowledge file: at its end, each once, every earlier byte as it was.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from echod.memory.compose import ComposeError, append_entries, newline_of
from echod.memory.document import parse, parse_block
from echod.memory.identity import normalise_title
from echod.memory.knowledge.text import learnings, plain, references_of, shortened, statement
from echod.memory.model import Block, Document, Entry, Form, Layer, Unreadable
from echod.memory.redact import redact_entry
from echod.memory.similarity import bare_title, files_in
from echod.memory.similarity.words import fold, jaccard, stem, words

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


class Material(NamedTuple):
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


ALIKE = 0.5
"""Share of two titles' words that makes them one topic."""

REFERENCE_CAPACITY = 1500
"""Characters of the references of one block; they are all kept, so a block that has more takes in no others."""

_LATEST = 16  # groups of one feature that may still take in others; thousands of equal titles stay linear
_COMMON_FROM = 24  # a file or word that so many entries have tells no topics apart


@dataclass(slots=True)
class _Group:
    members: list[int]
    size: int
    references: dict[str, None] = field(default_factory=dict)

    @property
    def reference_size(self) -> int:
        return sum(map(len, self.references))


def topics(materials: Sequence[Material]) -> tuple[tuple[int, ...], ...]:
    """The groups, each in order of date and title; the groups in the order of their first members in `materials`."""
    order = sorted(range(len(materials)), key=lambda at: canonical(materials[at]))
    common = _common(materials)
    groups: list[_Group] = []
    open_by_feature: defaultdict[tuple[str, str], dict[int, None]] = defaultdict(dict)
    for at in order:
        material = materials[at]
        features = [feature for feature in _features(material) if feature not in common]
        candidates = dict.fromkeys(number for feature in features for number in open_by_feature[feature])
        number = _best(material, candidates, groups, materials, common)
        if number is None:
            number = len(groups)
            groups.append(_Group([], 0))
        group = groups[number]
        group.members.append(at)
        group.size += _size(material)
        group.references |= dict.fromkeys(material.references)
        for feature in features:
            latest = open_by_feature[feature]
            latest[number] = None
            if len(latest) > _LATEST:
                del latest[next(iter(latest))]
    return tuple(sorted((tuple(group.members) for group in groups), key=min))


def canonical(material: Material) -> tuple[object, ...]:
    """The order of materials that does not depend on where they stand."""
    return (material.day, material.title, material.points, material.references)


def _best(
    material: Material,
    candidates: dict[int, None],
    groups: Sequence[_Group],
    materials: Sequence[Material],
    common: set[tuple[str, str]],
) -> int | None:
    """The group that the material belongs to most, if it belongs to one that has room."""
    best: tuple[float, int] | None = None
    for number in candidates:
        group = groups[number]
        if group.size + _size(material) > CAPACITY:
            continue
        new = sum(len(reference) for reference in material.references if reference not in group.references)
        if group.reference_size + new > REFERENCE_CAPACITY:
            continue
        affinity = max(_affinity(material, materials[member], common) for member in group.members)
        if affinity >= ALIKE and (best is None or (-affinity, number) < best):
            best = (-affinity, number)
    return best[1] if best else None


def _affinity(one: Material, other: Material, common: set[tuple[str, str]]) -> float:
    shared = any(("file", name) not in common for name in one.files & other.files)
    titles = jaccard(one.words, other.words) if one.words and other.words else float(one.title == other.title)
    return shared + titles


def _size(material: Material) -> int:
    return sum(map(len, material.titled_points))


def _features(material: Material) -> Iterator[tuple[str, str]]:
    yield from (("file", name) for name in sorted(material.files))
    yield from (("word", word) for word in sorted(material.words))
    yield ("title", material.title)


def _common(materials: Sequence[Material]) -> set[tuple[str, str]]:
    counts = Counter(feature for material in materials for feature in _features(material))
    return {feature for feature, count in counts.items() if count >= _COMMON_FROM and feature[0] != "title"}


POINT_LINES = 3
"""Lines for the points of a block; heading and references take the other two of five."""

_MARKUP = re.compile(r"[`~<>#|\[\]]")


def knowledge_blocks(materials: Sequence[Material]) -> tuple[str, ...]:
    """The blocks that these entries become, one for each topic; without secrets, each ends with one newline."""
    return tuple(compose_block([materials[at] for at in group]) for group in topics(materials))


def compose_block(group: Sequence[Material]) -> str:
    """The block of one topic. The order of its entries makes no difference."""
    group = sorted(group, key=canonical)
    title = group[0].title if len(group) == 1 else topic_title(group)
    points = list(group[0].points) if len(group) == 1 else [p for member in group for p in member.titled_points]
    for heading in (title, "several learnings"):
        for lines in (points, [_MARKUP.sub("", point) for point in points]):
            text = redact_entry(_block(heading, group, lines)).text
            if _reads_back(text, heading):
                return text
    return redact_entry(_block("several learnings", group, ["The points are in the archive."])).text


def topic_title(group: Sequence[Material]) -> str:
    """What a group is about: the words that most of its titles share, else the title of the newest one."""
    shares = {word: sum(word in member.words for member in group) for member in group for word in member.words}
    shared = {word for word, count in shares.items() if 2 * count > len(group)}
    newest = max(group, key=canonical)
    best = max(group, key=lambda member: (len(shared & member.words), -len(member.title), canonical(member)))
    return best.title if shared else newest.title


def _block(title: str, group: Sequence[Material], points: Sequence[str]) -> str:
    references = dict.fromkeys(reference for member in group for reference in member.references)
    day = max(member.day for member in group)
    return "\n".join([
        f"## {Layer.INSCRIBED.value.title()} \u2014 {MARK}{title} ({day.isoformat()})",
        f"**Evidence**: {SEPARATOR.join(references) or NO_EVIDENCE}",
        *(f"- {line}" for line in packed(points, POINT_LINES)),
        "",
    ])  # fmt: skip


def packed(points: Sequence[str], lines: int) -> tuple[str, ...]:
    """The points in their order on at most so many lines of about the same length."""
    left = list(points)
    result = []
    for remaining in range(lines, 0, -1):
        if not left:
            break
        share = sum(map(len, left)) / remaining
        line = [left.pop(0)]
        while left and (remaining == 1 or (len(left) >= remaining and sum(map(len, line)) + len(left[0]) / 2 <= share)):
            line.append(left.pop(0))
        result.append(" ".join(line))
    return tuple(result)


def _reads_back(text: str, title: str) -> bool:
    entry = parse_block(text).entry
    return (
        entry is not None
        and entry.form is Form.LAYER_HEADING
        and entry.layer is Layer.INSCRIBED
        and entry.title == f"{MARK}{title}"
        and [field.name for field in entry.fields] == ["evidence"]
        and entry.body.end > entry.body.start
    )


def new_knowledge_file(role: str) -> bytes:
    """What a knowledge file holds before its first block."""
    return f"<!-- echo-schema: v1 -->\n# {role[:1].upper()}{role[1:]} Knowledge\n".encode()


def with_blocks(role: str, knowledge: bytes | None, blocks: Sequence[str]) -> bytes | Unreadable:
    """The knowledge file with these blocks at its end; those that it holds already are passed over.

    Args:
        role: the role's name, for the title of a new file.
        knowledge: the file's bytes; None if there is none.
        blocks: texts as `knowledge_blocks` gives them.

    Raises:
        ComposeError: a code block or comment that is never closed in the file would swallow the new blocks.
    """
    document = parse(new_knowledge_file(role) if knowledge is None else knowledge)
    if isinstance(document, Unreadable):
        return document
    standing = {_content(block.text) for block in document.blocks}
    new = [text for text in dict.fromkeys(blocks) if _content(text) not in standing]
    if not new:
        return document.render() if knowledge is None else knowledge
    newline = newline_of(document)
    data = append_entries(document, [text.replace("\n", newline) for text in new])
    after = parse(data)
    if isinstance(after, Unreadable) or not _continues(document, after, new):
        raise ComposeError("A code block or comment that is never closed in this file would swallow the new blocks.")
    return data


def _continues(before: Document, after: Document, new: Sequence[str]) -> bool:
    """Whether `after` has the blocks of `before` and the new ones behind them, and nothing else."""
    contents = [_content(block.text) for block in (*before.blocks,)] + [_content(text) for text in new]
    return [_content(block.text) for block in after.blocks] == contents


def _content(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip()
