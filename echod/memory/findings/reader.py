"""From the bytes of a findings file to findings, with what was missing filled in.

What belongs together is decided by `sections`; this module asks what each section says. How memory files are read is
not told here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from operator import itemgetter
from typing import NamedTuple

from echod.memory.document import parse
from echod.memory.findings.fields import Fields, Gleaned, Said, glean, own_text
from echod.memory.findings.sections import Section, front_matter, is_empty_place, split, unfolded, unwrapped
from echod.memory.findings.text import (
    KINDS,
    Title,
    canonical_title,
    first_line_title,
    read_confidence,
    read_date,
    read_layer,
    read_optional,
    read_title,
)
from echod.memory.model import Layer, Unreadable

DEFAULT_LAYER = Layer.TRACED
DEFAULT_CONFIDENCE = 0.5
UNTITLED = "Untitled"

_CLAIMS = frozenset({Layer.ETCHED, Layer.NOTES})


@dataclass(frozen=True, slots=True)
class Finding:
    """One learning as an agent reported it, with what was missing filled in.

    Attributes:
        key: names this finding in the ledger of consumed ones; the same for the same words of the same agent,
            whatever the file's date.
        title: the heading without date, layer, type word and decoration; never empty.
        kind: the type word (`Pattern`), exactly as a memory file's reader finds it again.
        layer: the layer it is to be stored in.
        claimed: etched or notes where the finding claims one of them: only a person may give those.
        source: as written; the agent's name if it says none.
        evidence: as written, on one line; None if it says none.
        verified: the stated day, else the file's; never later than the day after the file's.
        fields: all other metadata (tags, category, ...) in order, names in lower case without spaces.
        text: the learning, Markdown lines; empty where the title says it all.
    """

    key: str
    title: str
    kind: str | None
    heading_date: date
    layer: Layer
    claimed: Layer | None
    confidence: float
    source: str
    evidence: str | None
    verified: date
    supersedes: str | None
    fields: tuple[tuple[str, str], ...]
    text: str


def read_findings(data: bytes, *, agent: str, file_date: date) -> tuple[Finding, ...] | Unreadable:
    """The findings in a file, in file order; none for a file that says nothing.

    Args:
        data: the file's bytes.
        agent: who wrote it (the file's name without `-findings.md`); the source where none is stated.
        file_date: the file's day; the date and verified of findings that state none.
    """
    understood = parse(data)
    if isinstance(understood, Unreadable):
        return understood
    own_names = frozenset(re.findall(r"[^\W_]+", agent.casefold()))
    lines, about_file = front_matter(unwrapped(_lines(data.decode())))
    sections = split(unfolded(lines), own_names)
    return tuple(_read_sections(sections, about_file, agent, file_date))


def _lines(text: str) -> list[str]:
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    # Invisible characters at the start of a line hide its marks from every reader.
    return [line.lstrip("\u200b\u200c\u200d\u2060\ufeff") for line in text.split("\n")]


_NO_TITLE = Title("")


class _Group(NamedTuple):
    """What a heading that groups findings, or the file's head, says about all of them."""

    topic: str | None = None
    title: Title = _NO_TITLE
    fields: tuple[tuple[str, str], ...] = ()


def _read_sections(
    sections: Sequence[Section], about_file: tuple[tuple[str, str], ...], agent: str, file_date: date
) -> list[Finding]:
    found: list[tuple[int, Finding]] = []
    groups: dict[int, _Group] = {}
    grouped: set[int] = set()
    for index, section in enumerate(sections):
        gleaned = glean(section.lines, section.where, about_many=section.container)
        if index == 0:
            gleaned = Gleaned((*about_file, *gleaned.fields), gleaned.lines)
        text = own_text(gleaned.lines, opening=section.generic or section.container)
        if section.container:
            topic = None if section.generic or text else _heading_text(section.title)
            groups[index] = _Group(topic, _group_title(section), () if text else gleaned.fields)
        if not gleaned.fields and not section.title.typed and is_empty_place(section.title.text, text):
            continue
        # A heading with nothing below it says something only if its own words do.
        if text or (not section.container and (gleaned.fields or not section.generic)):
            above = [groups[number] for number in section.groups]
            found.append((index, _finding(section, gleaned.fields, text, above, agent=agent, file_date=file_date)))
            grouped.update(section.groups)
    for index, group in reversed(groups.items()):
        # A heading over nothing: what it says has to stand for itself.
        if index not in grouped and (group.topic or group.fields):
            above = [groups[number] for number in sections[index].groups]
            alone = _finding(sections[index], group.fields, "", above, agent=agent, file_date=file_date)
            found.append((index, alone))
            grouped.update(sections[index].groups)
    return [finding for _, finding in sorted(found, key=itemgetter(0))]


def _group_title(section: Section) -> Title:
    layer = read_layer(section.title.text) if section.generic else None
    return replace(section.title, layer=layer.value) if layer and layer.whole else section.title


def _heading_text(title: Title) -> str | None:
    text = f"{title.kind}: {title.text}" if title.kind else title.text
    return text or None


def _finding(
    section: Section, own: Fields, text: str, groups: Sequence[_Group], *, agent: str, file_date: date
) -> Finding:
    said = Said(own, [field for group in reversed(groups) for field in group.fields])
    title = _title(section, text, said)
    near = [group.title for group in reversed(groups)]
    claimed = said.take_read("layer", read_layer, title.layer) or next((t.layer for t in near if t.layer), None)
    day = said.take_read("date", read_date, title.date) or next((t.date for t in near if t.date), None)
    confidence = said.take_read("confidence", read_confidence)
    verified = said.take_read("verified", read_date)
    kind, name = title.kind, title.text or UNTITLED
    if kind is None and (word := said.take_if("kind", lambda value: value.casefold() in KINDS)):
        kind, name = canonical_title(f"{word}: {name}")
    source, evidence, supersedes = (
        read_optional(said.take(label) or "") for label in ("source", "evidence", "supersedes")
    )
    topics = [group.topic for group in groups if group.topic]
    fields = (*said.rest(), *((("topic", " / ".join(topics)),) if topics else ()))
    layer = claimed or DEFAULT_LAYER
    latest = file_date + timedelta(days=1)
    return Finding(
        key=_digest(agent, name, kind, day, claimed, confidence, source, evidence, verified, supersedes, fields, text),
        title=name,
        kind=kind,
        heading_date=day or file_date,
        layer=Layer.INSCRIBED if layer in _CLAIMS else layer,
        claimed=layer if layer in _CLAIMS else None,
        confidence=DEFAULT_CONFIDENCE if confidence is None else confidence,
        source=source or agent,
        evidence=evidence,
        verified=verified if verified and verified <= latest else file_date,
        supersedes=supersedes,
        fields=fields,
        text=text,
    )


def _title(section: Section, text: str, said: Said) -> Title:
    if not section.generic:
        return section.title
    named = said.take("title")
    first = next((line for line in text.split("\n") if line.strip(" `~*_-#>")), "")
    title = read_title(named) if named else first_line_title(first)
    return replace(title, date=section.title.date or title.date, layer=section.title.layer or title.layer)


def _digest(*stated: object) -> str:
    # Only what the file states: a copy of it with another modification time holds the same findings.
    return hashlib.sha256(json.dumps(stated, default=str).encode()).hexdigest()[:32]
