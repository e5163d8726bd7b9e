"""Read a findings file: from its bytes to findings, with defaults for everything that is missing.

`sections` decides which lines belong together; this module reads each section. How memory files are read is elsewhere
(`memory.document`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import NamedTuple

from echod.memory.document import parse
from echod.memory.findings.fields import (
    ExtractedFields,
    FieldPairs,
    StatedFields,
    extract_fields,
    is_metadata_comment,
    learning_text,
)
from echod.memory.findings.lists import read_document, split_learnings
from echod.memory.findings.nothing import (
    is_bare_nothing,
    is_report_heading,
    is_verdict,
    merely_reports,
    reports_nothing,
)
from echod.memory.findings.records import FindingRecord, classify_lines
from echod.memory.findings.sections import (
    DocumentTitle,
    FindingsSection,
    find_document_title,
    is_announcement,
    is_empty_section,
    is_findings_heading,
    is_plain_heading,
    split_front_matter,
    split_sections,
    strip_envelope,
    with_headings,
)
from echod.memory.findings.text import (
    KIND_WORDS,
    NO_TITLE,
    ParsedTitle,
    canonical_title,
    first_line_title,
    read_confidence,
    read_date,
    read_layer,
    read_optional,
    read_title,
)
from echod.memory.model import DEFAULT_CONFIDENCE, Layer, Unreadable

DEFAULT_LAYER = Layer.INSCRIBED
"""The layer of findings that state none. One that only reports what was done is traced."""

UNTITLED = "Untitled"


@dataclass(frozen=True, slots=True)
class Finding:
    """One learning as an agent reported it, with defaults for everything that is missing."""

    # Identifies this finding in the ledger of consumed ones; equal for the same words of the same agent, whatever the
    # file's date.
    key: str
    title: str  # the heading without date, layer, type word and decoration; never empty
    kind: str | None  # the type word (`Pattern`), exactly as a memory file's reader finds it again
    heading_date: date
    layer: Layer  # the layer it is to be stored in
    claimed_layer: Layer | None  # etched or notes where the finding claims one of them, which only the user may give
    confidence: float
    source: str  # as written; the agent's name if it is missing
    evidence: str | None  # as written, on one line; None if it is missing
    verified: date  # the stated day, else the file's; never later than the day after the file's
    supersedes: str | None
    # All other metadata (tags, category, ...) in order, names in lower case without spaces.
    fields: tuple[tuple[str, str], ...]
    text: str  # the learning, Markdown lines; empty where the title is all of it


def read_findings(data: bytes, *, agent: str, file_date: date) -> tuple[Finding, ...] | Unreadable:
    """Return the findings in a file, in file order; none for a file without content.

    The agent (the file's name without `-findings.md`) is the source of findings that state none, and the file's day
    their date and verified.
    """
    parsed = parse(data)
    if isinstance(parsed, Unreadable):
        return parsed
    agent_words = frozenset(re.findall(r"[^\W_]+", agent.casefold()))
    whole = strip_envelope(_lines(data.decode()))
    lines, file_fields = split_front_matter(whole)
    records = read_document("\n".join(lines))
    if file_fields and _begins_document(lines):
        documents = read_document("\n".join(whole))
        records, file_fields = (documents, ()) if documents else (records, file_fields)
    if records is not None:
        return tuple(_build_records(records, _WHOLE_FILE, [_GroupHeading(fields=file_fields)], agent, file_date))
    title = find_document_title(lines, file_fields, agent_words)
    if title is not None:
        return tuple(_read_one_learning(title, lines, file_fields, agent, file_date))
    sections = split_sections(with_headings(lines), agent_words)
    return tuple(_read_sections(sections, file_fields, agent, file_date))


def _begins_document(lines: Sequence[str]) -> bool:
    """Return whether what follows front matter begins like another document of YAML."""
    first = next((line for line in lines if line.strip()), "")
    return first.startswith("title:")


def _lines(text: str) -> list[str]:
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    # Invisible characters at the start of a line hide its marks from every reader.
    return [line.lstrip("\u200b\u200c\u200d\u2060\ufeff") for line in text.split("\n")]


class _GroupHeading(NamedTuple):
    """Topic, title and fields that a heading above a group, or the file's head, gives to all findings below it."""

    topic: str | None = None
    title: ParsedTitle = NO_TITLE
    fields: tuple[tuple[str, str], ...] = ()


_WHOLE_FILE = FindingsSection(NO_TITLE, generic=True, lines=(), line_kinds=(), container=False, groups=())


def _read_one_learning(
    title: DocumentTitle, lines: Sequence[str], fields: FieldPairs, agent: str, file_date: date
) -> Iterator[Finding]:
    body = list(lines[title.end :])
    text = learning_text(list(zip(body, classify_lines(body), strict=True)), strip_leading=False)
    section = _WHOLE_FILE._replace(title=read_title(title.text), generic=False)
    own = [(name, value) for name, value in fields if name != "title" or value != title.text]
    if text or title.text:
        yield _build_finding(section, own, text, (), agent, file_date)


def _build_records(
    records: Iterable[FindingRecord],
    section: FindingsSection,
    groups: Sequence[_GroupHeading],
    agent: str,
    file_date: date,
) -> Iterator[Finding]:
    """Yield the findings of the parts of a section; what the section states holds for all of them."""
    for record in records:
        if reports_nothing(record.text or record.title or "") and not record.fields:
            continue
        title = section.title if record.title is None else read_title(record.title)
        title = replace(title, date=section.title.date or title.date, layer=section.title.layer or title.layer)
        own = section._replace(title=title, generic=record.title is None)
        yield _build_finding(own, record.fields, record.text, groups, agent, file_date)


def _read_sections(
    sections: Sequence[FindingsSection], file_fields: tuple[tuple[str, str], ...], agent: str, file_date: date
) -> list[Finding]:
    findings: dict[int, Sequence[Finding]] = {}
    groups: dict[int, _GroupHeading] = {}
    grouped: set[int] = set()
    for index, section in enumerate(sections):
        extracted = extract_fields(section.lines, section.line_kinds, is_group=section.container)
        stated = extracted.fields
        if index == 0:
            extracted = ExtractedFields((*file_fields, *extracted.fields), extracted.body_lines)
        text = learning_text(extracted.body_lines, strip_leading=section.generic or section.container)
        if section.container:
            topic = None if text or not _has_topic(section) else _heading_text(section.title)
            groups[index] = _GroupHeading(topic, _group_title(section), () if text else extracted.fields)
        enclosing = [groups[number] for number in section.groups]
        is_entry = bool(stated or section.title.dated or section.title.typed)
        if _is_nothing(section, text) if not is_entry else _is_empty_entry(section, text):
            grouped.update((index, *section.groups))
            continue
        if section.generic or section.container or _is_announcement(section):
            body = [line for line in extracted.body_lines if not is_metadata_comment(line)]
            parts = split_learnings(body)
            if parts is not None:
                topic = _heading_text(section.title) if _has_topic(section) else None
                own = _GroupHeading(topic, NO_TITLE, extracted.fields)
                findings[index] = tuple(_build_records(parts, section, [*enclosing, own], agent, file_date))
                grouped.update((index, *section.groups))
                continue
        # A heading with nothing below it is a finding only if its own words have content.
        if text or (not section.container and (extracted.fields or not section.generic)):
            if section.generic and not section.container and _has_topic(section):
                enclosing.append(_GroupHeading(_heading_text(section.title)))
            findings[index] = (_build_finding(section, extracted.fields, text, enclosing, agent, file_date),)
            grouped.update(section.groups)
    for index, group in reversed(groups.items()):
        # A heading above nothing: its own words are the finding.
        is_heading_only = group.topic and not reports_nothing(group.topic) and not is_findings_heading(group.topic)
        if index not in grouped and (is_heading_only or group.fields):
            section = sections[index]
            enclosing = [groups[number] for number in section.groups]
            findings[index] = (_build_finding(section, group.fields, "", enclosing, agent, file_date),)
            grouped.update(section.groups)
    return [finding for index in sorted(findings) for finding in findings[index]]


def _is_nothing(section: FindingsSection, text: str) -> bool:
    """Return whether a section reports only that there is nothing to report."""
    title = section.title.text
    if not text.strip():
        return reports_nothing(title) or is_verdict(_heading_text(section.title) or "")
    if is_bare_nothing(text):
        is_place = section.generic or section.container or is_report_heading(title)
        return is_place or reports_nothing(title) or is_empty_section(title, text)
    return reports_nothing(text)


def _is_empty_entry(section: FindingsSection, text: str) -> bool:
    """Return whether an entry in full form reports nothing in its title and its text: `Pattern: None`."""
    title = section.title.text
    return bool(title) and reports_nothing(title) and (not text.strip() or reports_nothing(text))


def _is_announcement(section: FindingsSection) -> bool:
    title = section.title
    return not (title.dated or title.typed or title.layer) and is_announcement(title.text)


def _has_topic(section: FindingsSection) -> bool:
    """Return whether the heading of a group has words about its findings that must stay with them."""
    return not section.generic or (is_findings_heading(section.title.text) and not is_plain_heading(section.title.text))


def _group_title(section: FindingsSection) -> ParsedTitle:
    layer = read_layer(section.title.text) if section.generic else None
    return replace(section.title, layer=layer.value) if layer and layer.exact else section.title


def _heading_text(title: ParsedTitle) -> str | None:
    text = f"{title.kind}: {title.text}" if title.kind else title.text
    return text or None


def _build_finding(
    section: FindingsSection,
    own: FieldPairs,
    text: str,
    groups: Sequence[_GroupHeading],
    agent: str,
    file_date: date,
) -> Finding:
    stated = StatedFields(own, [field for group in reversed(groups) for field in group.fields])
    title = _section_title(section, text, stated)
    titles = [group.title for group in reversed(groups)]
    claimed_layer = stated.pop_value("layer", read_layer, title.layer)
    claimed_layer = claimed_layer or next((t.layer for t in titles if t.layer), None)
    day = stated.pop_value("date", read_date, title.date) or next((t.date for t in titles if t.date), None)
    confidence = stated.pop_value("confidence", read_confidence)
    verified = stated.pop_value("verified", read_date)
    kind, name = title.kind, title.text or UNTITLED
    if kind is None and (word := stated.pop_if("kind", lambda value: value.casefold() in KIND_WORDS)):
        kind, name = canonical_title(f"{word}: {name}")
    labels = ("source", "evidence", "supersedes")
    source, evidence, supersedes = (read_optional(stated.pop(label) or "") for label in labels)
    topics = [group.topic for group in groups if group.topic]
    fields = (*stated.remaining(), *((("topic", " / ".join(topics)),) if topics else ()))
    layer = claimed_layer or (Layer.TRACED if merely_reports(name, text) else DEFAULT_LAYER)
    latest = file_date + timedelta(days=1)
    # Only values that the file states: a copy of it with another modification time holds the same findings.
    values = (agent, name, kind, day, claimed_layer, confidence, source, evidence, verified, supersedes, fields, text)
    return Finding(
        key=hashlib.sha256(json.dumps(values, default=str).encode()).hexdigest()[:32],
        title=name,
        kind=kind,
        heading_date=day or file_date,
        layer=Layer.INSCRIBED if layer.protected else layer,
        claimed_layer=layer if layer.protected else None,
        confidence=DEFAULT_CONFIDENCE if confidence is None else confidence,
        source=source or agent,
        evidence=evidence,
        verified=verified if verified and verified <= latest else file_date,
        supersedes=supersedes,
        fields=fields,
        text=text,
    )


def _section_title(section: FindingsSection, text: str, stated: StatedFields) -> ParsedTitle:
    if not section.generic:
        return section.title
    stated_title = stated.pop("title")
    first = next((line for line in text.split("\n") if line.strip(" `~*_-#>")), "")
    title = read_title(stated_title) if stated_title else first_line_title(first)
    return replace(title, date=section.title.date or title.date, layer=section.title.layer or title.layer)
