"""Knowledge blocks: what is left of the entries of one topic, in three to five lines.

A heading, the references of all of them, and their points on one to three lines. It is an ordinary entry in the form
with the layer in the heading, so every reader of memory files understands it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from echod.memory.document import parse_block
from echod.memory.knowledge.material import MARK, NO_EVIDENCE, SEPARATOR, Material
from echod.memory.knowledge.topics import canonical, topics
from echod.memory.layers import Layer
from echod.memory.model import Form
from echod.memory.redact import redact_entry

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
