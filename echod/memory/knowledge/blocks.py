"""Write knowledge blocks: the learnings of one topic, one bullet for each.

A block has a heading, the references that all of its learnings share, and a bullet for each learning with its own
references. It is an ordinary entry in the form with the layer in the heading, so every reader of memory files
understands it. It reads back without loss: its points are taken as they are.

Learnings belong to one topic if they refer to the same file, or if the titles of their entries share most of their
words. The groups do not depend on the order of the entries, and no group is larger than one block can hold.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.compose import ComposeError, append_entries, detect_newline
from echod.memory.document import appended_blocks, parse, parse_block
from echod.memory.edit import BodyPart, PartKind, joined_lines, learnings, split_body
from echod.memory.identity import normalize_title
from echod.memory.knowledge.text import (
    body_references,
    contains_token,
    extract_references,
    join_sentences,
    split_lead,
    split_sentences,
    strip_emphasis,
    topic_words,
    truncate_text,
    with_full_stop,
)
from echod.memory.model import Block, Entry, Form, Layer, Unreadable
from echod.memory.redact import redact_entry
from echod.memory.shorten import is_statistics_heading
from echod.memory.similarity import bare_title, files_in
from echod.memory.similarity.words import jaccard
from echod.memory.specificity import NameCounts
from echod.memory.text import capitalize

# Characters and bullets of one block of several entries. A larger group is split into topics.
_MAX_POINT_CHARACTERS = 2000
_MAX_POINTS = 8
_TITLE_PREFIX = "Knowledge: "  # the prefix of the title of a knowledge block
_REFERENCE_SEPARATOR = "; "  # the separator of references
_NO_EVIDENCE = "none recorded"
_OWN_EVIDENCE = "with each learning"
_MAX_TITLE_LENGTH = 100  # characters
_SHARE_OF_ENTRY = 0.71  # the share of the characters of an entry that its block may have
_CHARACTERS_AROUND = 70  # of the heading and the references of a block, without title and references
_MAX_ATTACHED_LINES = 12  # lines of code or of a table that stay below a shortened learning
_DATE = lazy_pattern(r"[\[(]?\d{4}-\d{2}-\d{2}[\])]?")
_TASK_COMPLETED = lazy_pattern(r"task completed: *", re.IGNORECASE)
MIN_TOPIC_SIMILARITY = 0.5
"""Share of two titles' words that makes them one topic."""

# Characters of the references of one block. They are all kept, so a block with more takes no other entries.
_MAX_REFERENCE_CHARACTERS = 1500
_MAX_OPEN_GROUPS = 16  # open groups per feature, so that thousands of equal titles take linear time
_MIN_COMMON_COUNT = 24  # entries with the same file or word, from which on it does not distinguish topics
_MARKUP = lazy_pattern(r"[`~<>#|\[\]]")
_ITEM_MARK = lazy_pattern(r"\A[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+")


class BlockMaterial(NamedTuple):
    """The parts that one learning, or a whole knowledge block, adds to a knowledge block."""

    title: str  # the title of the entry, or the topic of a knowledge block
    day: date  # the day on which it was last verified
    # The learnings, a bullet each; with their own titles (`*title*: ...`) where they come from several entries. Further
    # lines of a bullet are indented.
    points: tuple[str, ...]
    references: tuple[str, ...]  # the references of its entry that are in no point of it, and must be kept
    files: frozenset[str]  # the files that it refers to, without line numbers
    words: frozenset[str]  # the words of its titles that distinguish topics
    is_compressed: bool  # it is a knowledge block
    place: int = 0  # among the learnings of its entry

    @property
    def titled_points(self) -> tuple[str, ...]:
        """The points as written among those of other entries, each with the title of its entry."""
        if any(point.startswith("*") for point in self.points):
            return self.points
        return tuple(point if point == self.title else f"*{self.title}*: {point}" for point in self.points)


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
    titles = {member.title for member in group}
    title = group[0].title if len(titles) == 1 else _topic_title(group)
    shared = _shared_references(group)
    everything = dict.fromkeys(reference for member in group for reference in member.references)
    own: dict[str, dict[str, None]] = {}  # point -> its own references
    for member in group:
        for point in member.points if len(titles) == 1 else member.titled_points:
            references = () if member.is_compressed else (r for r in member.references if r not in shared)
            own.setdefault(point, {}).update(dict.fromkeys(references))
    points = [_with_references(point, references) for point, references in own.items()]
    plain = [_MARKUP.sub("", point) for point in own]
    for heading in (title, "several learnings"):
        for evidence, lines in ((shared, points), (everything, dict.fromkeys(plain))):
            text = redact_entry(_block(heading, group, evidence, lines)).text
            if _reads_back(text, heading):
                return text
    points = ["The points are in the archive."]
    return redact_entry(_block("several learnings", group, everything, points)).text


def _shared_references(group: Sequence[BlockMaterial]) -> dict[str, None]:
    """Return the references of a whole block: those of all of its learnings, and of blocks that were merged into it."""
    everywhere = frozenset.intersection(*(frozenset(member.references) for member in group))
    return dict.fromkeys(
        reference
        for member in group
        for reference in member.references
        if member.is_compressed or reference in everywhere
    )


def _with_references(point: str, references: Iterable[str]) -> str:
    """Return a learning with the references that are its own."""
    own = [reference for reference in references if not contains_token(point, reference)]
    first, newline, below = point.partition("\n")
    return f"{with_full_stop(first)} ({_REFERENCE_SEPARATOR.join(own)}){newline}{below}" if own else point


def _topic_title(group: Sequence[BlockMaterial]) -> str:
    """Return a group's topic: the title with the most words shared by the group, else the newest title."""
    shares = {word: sum(word in member.words for member in group) for member in group for word in member.words}
    shared = {word for word, count in shares.items() if 2 * count > len(group)}
    newest = max(group, key=_canonical_order)
    best = max(group, key=lambda member: (len(shared & member.words), -len(member.title), _canonical_order(member)))
    return best.title if shared else newest.title


def _block(title: str, group: Sequence[BlockMaterial], references: Iterable[str], points: Iterable[str]) -> str:
    day = max(member.day for member in group)
    missing = _OWN_EVIDENCE if any(member.references for member in group) else _NO_EVIDENCE
    return "\n".join([
        f"## {Layer.INSCRIBED.value.title()} \u2014 {_TITLE_PREFIX}{title} ({day.isoformat()})",
        f"**Evidence**: {_REFERENCE_SEPARATOR.join(references) or missing}",
        *(f"- {point}" for point in points),
        "",
    ])  # fmt: skip


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
    """Return whether a block has the form of the blocks that this module writes."""
    entry = block.entry
    return (
        entry is not None
        and entry.form is Form.LAYER_HEADING
        and entry.layer is Layer.INSCRIBED
        and entry.title.startswith(_TITLE_PREFIX)
        and [field.name for field in entry.fields] == ["evidence"]
        and all(part.is_item and part.lines[0].startswith("- ") for part in learnings(split_body(block.body)))
    )


def extract_materials(block: Block, entry: Entry, day: date, *, whole: bool = False) -> tuple[BlockMaterial, ...]:
    """Return what the learnings of an entry add to knowledge blocks; `day` is the day on which it was last verified.

    A learning is kept `whole`, or as its lead sentence and the most prescriptive one.
    """
    parts = learnings(split_body(block.body))
    if is_knowledge_block(block):
        return (_block_material(entry, parts, day),)
    title = _normalize_topic_title(entry.title)
    points = _select_points(title, block.body, None if whole else _room_for_points(block, entry))
    in_points = "\n".join(points)
    references = tuple(
        reference for reference in extract_references(entry, block.body) if not contains_token(in_points, reference)
    )
    shared_files = _files_in(references) if len(points) == 1 else frozenset()
    return tuple(
        BlockMaterial(
            title=title,
            day=day,
            points=(point,),
            references=references,
            files=_files_in(body_references(point)) | shared_files,
            words=topic_words(title),
            is_compressed=False,
            place=place,
        )
        for place, point in enumerate(points)
    )


def _room_for_points(block: Block, entry: Entry) -> int:
    """Return the characters that the points of an entry may have, so that its block is shorter than the entry."""
    around = len(entry.title) + sum(map(len, extract_references(entry, ""))) + _CHARACTERS_AROUND
    return int(_SHARE_OF_ENTRY * len(block.text.strip())) - around


def _block_material(entry: Entry, parts: Sequence[BodyPart], day: date) -> BlockMaterial:
    title = entry.title.removeprefix(_TITLE_PREFIX)
    points = tuple("\n".join([part.lines[0].removeprefix("- "), *part.lines[1:]]) for part in parts)
    evidence = " ".join((entry.evidence or "").split())
    references = () if evidence == _NO_EVIDENCE else tuple(dict.fromkeys(evidence.split(_REFERENCE_SEPARATOR)))
    text = "\n".join(points)
    return BlockMaterial(
        title=title,
        day=day,
        points=points,
        references=references,
        files=_files_in((*references, *body_references(text))),
        words=topic_words(" ".join([title, *re.findall(r"^\*([^*]+)\*: ", text, re.MULTILINE)])),
        is_compressed=True,
    )


def _files_in(references: Iterable[str]) -> frozenset[str]:
    """Return the files that references name. A name without its folder names too many files to distinguish topics."""
    return frozenset(name for name in files_in(" ".join(references)) if "/" in name)


def _normalize_topic_title(title: str) -> str:
    """Return a title for a knowledge block: no dates, no marks, not too long."""
    bare = strip_emphasis(_DATE.sub("", bare_title(title))).strip(" -:\u2013\u2014#")
    return truncate_text(bare or "untitled", _MAX_TITLE_LENGTH)


def _select_points(title: str, body: str, room: int | None) -> tuple[str, ...]:
    """Return the learnings of the body as bullets, without repeating the title.

    Each is whole if `room` is None. Otherwise each has its lead and its most prescriptive sentence, and the rest of the
    `room` characters is given to the most prescriptive ones of the other sentences.
    """
    normalized_title = normalize_title(title)
    bullets: list[_Bullet] = []
    for part in _chosen_learnings(body):
        lines = joined_lines(part)
        text = strip_emphasis(_ITEM_MARK.sub("", lines[0], count=1))
        if normalize_title(_TASK_COMPLETED.sub("", text)) != normalized_title or len(lines) > 1:
            bullets.append(_to_bullet(lines))
    if room is not None:
        _fill(bullets, room)
    points = dict.fromkeys(bullet.text(whole=room is None) for bullet in bullets)
    return tuple(point for point in points if point.strip()) or (title,)


@dataclass(slots=True)
class _Bullet:
    """A learning that is shortened: its sentences, the positions of those that stay, and the lines below it."""

    written: str
    sentences: list[str]
    chosen: set[int]
    below: list[str]  # nested items, code and tables, as written

    def text(self, *, whole: bool) -> str:
        if whole or len(self.chosen) == len(self.sentences):
            return "\n".join([with_full_stop(self.written), *_indented(self.below)]).rstrip()
        point = join_sentences(self.sentences[index] for index in sorted(self.chosen))
        missing = [r for r in body_references(" ".join(self.sentences)) if not contains_token(point, r)]
        point = f"{with_full_stop(point)} ({', '.join(missing)})" if missing else with_full_stop(point)
        attached = [line for line in self.below if not _ITEM_MARK.match(line)]
        return "\n".join([point, *_indented(attached if len(attached) <= _MAX_ATTACHED_LINES else [])]).rstrip()


def _to_bullet(lines: Sequence[str]) -> _Bullet:
    written, below = _ITEM_MARK.sub("", lines[0], count=1), _dedented(lines[1:])
    nested = [_ITEM_MARK.sub("", line, count=1) for line in below if _ITEM_MARK.match(line)]
    sentences = [s for line in (*split_lead(written), *nested) for s in split_sentences(strip_emphasis(line))]
    names = NameCounts(sentences)
    values = [names.judge(sentence).remedy_value for sentence in sentences]
    best = max(range(1, len(sentences)), key=lambda i: (values[i], -i), default=0)
    chosen = {0, best} if best and values[best] else set(range(min(1, len(sentences))))
    return _Bullet(strip_emphasis(written), sentences, chosen, below)


def _fill(bullets: Sequence[_Bullet], room: int) -> None:
    """Choose further sentences, the most prescriptive first, while there is room for them."""
    names = NameCounts(sentence for bullet in bullets for sentence in bullet.sentences)
    room -= sum(len(bullet.sentences[index]) + 2 for bullet in bullets for index in bullet.chosen)
    others = [
        (-names.judge(sentence).remedy_value, number, index)
        for number, bullet in enumerate(bullets)
        for index, sentence in enumerate(bullet.sentences)
        if index not in bullet.chosen
    ]
    for _, number, index in sorted(others):
        size = len(bullets[number].sentences[index]) + 1
        if size <= room:
            bullets[number].chosen.add(index)
            room -= size


def _chosen_learnings(body: str) -> list[BodyPart]:
    """Return the learnings of a body, without sections of figures where there is anything else."""
    parts = split_body(body)
    found: list[BodyPart] = []
    figures: list[BodyPart] = []
    in_figures = False
    for part in parts:
        if part.kind is PartKind.HEADING:
            in_figures = is_statistics_heading(part)
        elif part.kind is PartKind.LEARNING:
            (figures if in_figures else found).append(part)
    return found or figures


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" if line.strip() else "" for line in lines]


def _dedented(lines: Sequence[str]) -> list[str]:
    margin = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
    return [line[margin:] for line in lines]


@dataclass(slots=True)
class _TopicGroup:
    members: list[int]
    size: int
    points: int = 0
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
        group.points += len(material.points)
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
        if group.size + _titled_size(material) > _MAX_POINT_CHARACTERS or (
            group.points + len(material.points) > _MAX_POINTS
        ):
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
    return (material.day, material.title, material.references, material.place, material.points)
