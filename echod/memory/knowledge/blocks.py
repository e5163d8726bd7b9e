"""Write knowledge blocks: the entries of one topic in three to five lines.

A block has a heading, the references of all its entries, and their points on one to three lines. It is an ordinary
entry in the form with the layer in the heading, so every reader of memory files understands it. It reads back without
loss: its points are taken as they are.

Entries belong to one topic if they refer to the same file, or if their titles share most of their words. The groups do
not depend on the order of the entries, and no group is larger than one block can hold.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from echod.memory.compose import ComposeError, append_entries, detect_newline
from echod.memory.document import parse, parse_block
from echod.memory.identity import normalize_title
from echod.memory.knowledge.text import (
    extract_learnings,
    extract_references,
    extract_statement,
    strip_emphasis,
    truncate_text,
)
from echod.memory.merge import appended_blocks
from echod.memory.model import Block, Entry, Form, Layer, Unreadable
from echod.memory.redact import redact_entry
from echod.memory.similarity import bare_title, files_in
from echod.memory.similarity.words import fold, jaccard, stem, tokenize
from echod.memory.text import capitalize

# Characters of the points of one block, about 250 tokens. A larger group is split into topics.
_MAX_POINT_CHARACTERS = 1000
_MAX_BLOCK_LINES = 5  # lines of a knowledge block
_TITLE_PREFIX = "Knowledge: "  # the prefix of the title of a knowledge block
_REFERENCE_SEPARATOR = "; "  # the separator of references
_NO_EVIDENCE = "none recorded"
_MAX_TITLE_LENGTH = 100  # characters
_MAX_POINT_LENGTH = 300
_DATE = re.compile(r"[\[(]?\d{4}-\d{2}-\d{2}[\])]?")
_TASK_COMPLETED = re.compile(r"task completed: *", re.IGNORECASE)
_STOP_WORDS = frozenset(
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

MIN_TOPIC_SIMILARITY = 0.5
"""Share of two titles' words that makes them one topic."""

# Characters of the references of one block. They are all kept, so a block with more takes no other entries.
_MAX_REFERENCE_CHARACTERS = 1500
_MAX_OPEN_GROUPS = 16  # open groups per feature, so that thousands of equal titles take linear time
_MIN_COMMON_COUNT = 24  # entries with the same file or word, from which on it does not distinguish topics
_POINT_LINES = 3  # lines for the points; heading and references take the other two of five
_MARKUP = re.compile(r"[`~<>#|\[\]]")


class BlockMaterial(NamedTuple):
    """The parts that an entry adds to a knowledge block."""

    title: str  # the title of the entry, or the topic of a knowledge block
    day: date  # the day on which it was last verified
    # Its statements, one per line; with their own titles (`*title*: ...`) where they come from several entries.
    points: tuple[str, ...]
    references: tuple[str, ...]  # all references, which must be kept
    files: frozenset[str]  # the files that it refers to, without line numbers
    words: frozenset[str]  # the words of its titles that distinguish topics
    is_compressed: bool  # it is a knowledge block

    @property
    def titled_points(self) -> tuple[str, ...]:
        """The points as written among those of other entries, each with the title of its entry."""
        if any(point.startswith("*") for point in self.points):
            return self.points
        joined = " ".join(self.points)
        return (joined if joined == self.title else f"*{self.title}*: {joined}",)


def new_knowledge_file(role: str) -> bytes:
    """Return the content of a knowledge file without blocks."""
    return f"<!-- echo-schema: v1 -->\n# {capitalize(role)} Knowledge\n".encode()


def with_blocks(role: str, knowledge: bytes | None, blocks: Sequence[str]) -> bytes | Unreadable:
    """Return the knowledge file with these `knowledge_blocks` at its end, each once. Every earlier byte stays.

    None is a file that does not exist. Where an unclosed code block or comment would swallow them: `ComposeError`.
    """
    document = parse(new_knowledge_file(role) if knowledge is None else knowledge)
    if isinstance(document, Unreadable):
        return document
    existing = {_comparison_text(block.text) for block in document.blocks}
    new = [text for text in dict.fromkeys(blocks) if _comparison_text(text) not in existing]
    if not new:
        return document.render() if knowledge is None else knowledge
    newline = detect_newline(document)
    data = append_entries(document, [text.replace("\n", newline) for text in new])
    after = parse(data)
    appended = None if isinstance(after, Unreadable) else appended_blocks(document, after)
    if appended is None or [_comparison_text(block.text) for block in appended] != list(map(_comparison_text, new)):
        raise ComposeError("A code block or comment that is never closed in this file would swallow the new blocks.")
    return data


def _comparison_text(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip()


def knowledge_blocks(materials: Sequence[BlockMaterial]) -> tuple[str, ...]:
    """Return the blocks that these entries become, one per topic, without secrets, each ending with one newline."""
    return tuple(compose_block([materials[index] for index in group]) for group in group_by_topic(materials))


def compose_block(group: Sequence[BlockMaterial]) -> str:
    """Return the block of one topic. The order of its entries makes no difference."""
    group = sorted(group, key=_canonical_order)
    title = group[0].title if len(group) == 1 else _topic_title(group)
    points = list(group[0].points) if len(group) == 1 else [p for member in group for p in member.titled_points]
    for heading in (title, "several learnings"):
        for lines in (points, [_MARKUP.sub("", point) for point in points]):
            text = redact_entry(_block(heading, group, lines)).text
            if _reads_back(text, heading):
                return text
    return redact_entry(_block("several learnings", group, ["The points are in the archive."])).text


def _topic_title(group: Sequence[BlockMaterial]) -> str:
    """Return a group's topic: the title with the most words shared by the group, else the newest title."""
    shares = {word: sum(word in member.words for member in group) for member in group for word in member.words}
    shared = {word for word, count in shares.items() if 2 * count > len(group)}
    newest = max(group, key=_canonical_order)
    best = max(group, key=lambda member: (len(shared & member.words), -len(member.title), _canonical_order(member)))
    return best.title if shared else newest.title


def _block(title: str, group: Sequence[BlockMaterial], points: Sequence[str]) -> str:
    references = dict.fromkeys(reference for member in group for reference in member.references)
    day = max(member.day for member in group)
    return "\n".join([
        f"## {Layer.INSCRIBED.value.title()} \u2014 {_TITLE_PREFIX}{title} ({day.isoformat()})",
        f"**Evidence**: {_REFERENCE_SEPARATOR.join(references) or _NO_EVIDENCE}",
        *(f"- {line}" for line in pack_lines(points, _POINT_LINES)),
        "",
    ])  # fmt: skip


def pack_lines(points: Sequence[str], lines: int) -> tuple[str, ...]:
    """Return the points in order on at most this number of lines of similar length."""
    remaining_points = list(points)
    result = []
    for remaining in range(lines, 0, -1):
        if not remaining_points:
            break
        target_length = sum(map(len, remaining_points)) / remaining
        line = [remaining_points.pop(0)]
        while remaining_points:
            fits = sum(map(len, line)) + len(remaining_points[0]) / 2 <= target_length
            if remaining > 1 and not (len(remaining_points) >= remaining and fits):
                break
            line.append(remaining_points.pop(0))
        result.append(" ".join(line))
    return tuple(result)


def _reads_back(text: str, title: str) -> bool:
    entry = parse_block(text).entry
    return (
        entry is not None
        and entry.form is Form.LAYER_HEADING
        and entry.layer is Layer.INSCRIBED
        and entry.title == f"{_TITLE_PREFIX}{title}"
        and [field.name for field in entry.fields] == ["evidence"]
        and entry.body.end > entry.body.start
    )


def is_knowledge_block(block: Block) -> bool:
    """Return whether a block has the form and length of the blocks that this module writes."""
    entry = block.entry
    return (
        entry is not None
        and entry.form is Form.LAYER_HEADING
        and entry.layer is Layer.INSCRIBED
        and entry.title.startswith(_TITLE_PREFIX)
        and len(block.text.rstrip().split("\n")) <= _MAX_BLOCK_LINES
    )


def extract_material(block: Block, entry: Entry, day: date, *, whole: bool = False) -> BlockMaterial:
    """Return the parts that an entry adds to a knowledge block; `day` is the day on which it was last verified."""
    body = block.body
    is_compressed = is_knowledge_block(block)
    if is_compressed:
        title = entry.title.removeprefix(_TITLE_PREFIX)
        points = tuple(line.removeprefix("- ").rstrip() for line in body.split("\n") if line.strip())
        evidence = " ".join((entry.evidence or "").split())
        references = () if evidence == _NO_EVIDENCE else tuple(dict.fromkeys(evidence.split(_REFERENCE_SEPARATOR)))
        topic_text = " ".join([title, *re.findall(r"\*([^*]+)\*: ", body)])
    else:
        title = _normalize_topic_title(entry.title)
        points = _whole_points(title, body) if whole else _select_points(title, body)
        references = extract_references(entry, body)
        topic_text = title
    return BlockMaterial(
        title=title,
        day=day,
        points=points,
        references=references,
        # A file name without its folder (`README.md`) names too many files to distinguish topics.
        files=frozenset(name for name in files_in(" ".join(references)) if "/" in name),
        words=_topic_words(topic_text),
        is_compressed=is_compressed,
    )


def _topic_words(title: str) -> frozenset[str]:
    """Return the words of a title that describe its topic, without endings."""
    stems = (stem(word) for word in tokenize(fold(title)))
    return frozenset(word for word in stems if word not in _STOP_WORDS and not word.isdigit())


def _normalize_topic_title(title: str) -> str:
    """Return a title for a knowledge block: no dates, no marks, not too long."""
    bare = strip_emphasis(_DATE.sub("", bare_title(title))).strip(" -:\u2013\u2014#")
    return truncate_text(bare or "untitled", _MAX_TITLE_LENGTH)


def _select_points(title: str, body: str) -> tuple[str, ...]:
    """Return the statements of the body that fit into a block, without repeating the title."""
    normalized_title = normalize_title(title)
    points: list[str] = []
    remaining = _MAX_POINT_CHARACTERS
    for learning in extract_learnings(body):
        point = truncate_text(extract_statement(learning), _MAX_POINT_LENGTH)
        if normalize_title(_TASK_COMPLETED.sub("", point)) == normalized_title:
            continue
        if point and points and len(point) > remaining:
            break
        if point and point not in points:
            points.append(point)
            remaining -= len(point)
    return tuple(points) or (title,)


def _whole_points(title: str, body: str) -> tuple[str, ...]:
    """Return the learnings of the body, each whole on one line."""
    points = dict.fromkeys(strip_emphasis(learning) for learning in extract_learnings(body))
    return tuple(point for point in points if point) or (title,)


@dataclass(slots=True)
class _TopicGroup:
    members: list[int]
    size: int
    references: dict[str, None] = field(default_factory=dict)

    @property
    def reference_size(self) -> int:
        return sum(map(len, self.references))


def group_by_topic(materials: Sequence[BlockMaterial]) -> tuple[tuple[int, ...], ...]:
    """Return the groups, each in order of date and title, ordered by their first members in `materials`."""
    order = sorted(range(len(materials)), key=lambda index: _canonical_order(materials[index]))
    common = _common_features(materials)
    groups: list[_TopicGroup] = []
    open_by_feature: defaultdict[tuple[str, str], dict[int, None]] = defaultdict(dict)
    for index in order:
        material = materials[index]
        features = [feature for feature in _features(material) if feature not in common]
        candidates = dict.fromkeys(number for feature in features for number in open_by_feature[feature])
        number = _best_group(material, candidates, groups, materials, common)
        if number is None:
            number = len(groups)
            groups.append(_TopicGroup([], 0))
        group = groups[number]
        group.members.append(index)
        group.size += _titled_size(material)
        group.references |= dict.fromkeys(material.references)
        for feature in features:
            open_groups = open_by_feature[feature]
            open_groups[number] = None
            if len(open_groups) > _MAX_OPEN_GROUPS:
                del open_groups[next(iter(open_groups))]
    return tuple(sorted((tuple(group.members) for group in groups), key=min))


def _best_group(
    material: BlockMaterial,
    candidates: dict[int, None],
    groups: Sequence[_TopicGroup],
    materials: Sequence[BlockMaterial],
    common: set[tuple[str, str]],
) -> int | None:
    """Return the group with the highest affinity to the material, if one is similar and has room."""
    best: tuple[float, int] | None = None
    for number in candidates:
        group = groups[number]
        if group.size + _titled_size(material) > _MAX_POINT_CHARACTERS:
            continue
        new = sum(len(reference) for reference in material.references if reference not in group.references)
        if group.reference_size + new > _MAX_REFERENCE_CHARACTERS:
            continue
        affinity = max(_affinity(material, materials[member], common) for member in group.members)
        if affinity >= MIN_TOPIC_SIMILARITY and (best is None or (-affinity, number) < best):
            best = (-affinity, number)
    return best[1] if best else None


def _affinity(one: BlockMaterial, other: BlockMaterial, common: set[tuple[str, str]]) -> float:
    shared = any(("file", name) not in common for name in one.files & other.files)
    titles = jaccard(one.words, other.words) if one.words and other.words else float(one.title == other.title)
    return shared + titles


def _titled_size(material: BlockMaterial) -> int:
    return sum(map(len, material.titled_points))


def _features(material: BlockMaterial) -> Iterator[tuple[str, str]]:
    yield from (("file", name) for name in sorted(material.files))
    yield from (("word", word) for word in sorted(material.words))
    yield ("title", material.title)


def _common_features(materials: Sequence[BlockMaterial]) -> set[tuple[str, str]]:
    counts = Counter(feature for material in materials for feature in _features(material))
    return {feature for feature, count in counts.items() if count >= _MIN_COMMON_COUNT and feature[0] != "title"}


def _canonical_order(material: BlockMaterial) -> tuple[object, ...]:
    """Return a sort key of materials that does not depend on their positions."""
    return (material.day, material.title, material.points, material.references)
