"""The parts of an archive file around the messages: front matter, summary and tags, and how to find them again.

    ---
    log: 1
    date: "2026-03-06T10:30:00Z"
    ...
    ---

    ## Summary
    ...
    # Conversation 001
    (messages)

    ## Tags
    ...

Written byte for byte as recall-echo does, except that values are escaped. Read leniently: every form that recall-echo
ever wrote, and files that a user edited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from echod.memory.conversation.digest import ConversationTags
from echod.memory.conversation.model import one_line

_FRONT_MATTER = re.compile(r"\A\s*---[ \t]*\r?\n(?P<block>.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"(?P<key>[A-Za-z_][\w-]*)[ \t]*:[ \t]*(?P<value>.*)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_LOG = re.compile(r"\d{1,10}")
_TITLE = re.compile(r"^# Conversation (\d+)[ \t]*\r?\n(?:\n> (?:Continues|Reconstructed)[^\n]*\n)*\n?", re.MULTILINE)
_SUMMARY = re.compile(r"^## Summary[ \t]*$", re.MULTILINE)
_TAGS_START = b"\n\n## Tags\n\n"
_TAGS_LINE = re.compile(rb"\*\*(?:Project|Decisions|Action Items|Files|Tools)\*\*:.*|- .*|")
_MARKUP_START = re.compile(r"^([ \t]*)(?=#{1,6} |---|===|\*\*\*|```|~~~)", re.MULTILINE)
_LIST_HEADING = re.compile(r"^\*\*(?:Decisions|Action Items)\*\*:[ \t]*$", re.MULTILINE)


class ArchiveHeader(NamedTuple):
    """The front matter of an archive.

    Attributes:
        log: the number of the archive.
        date: `2026-03-06T10:30:00Z`, when the session was archived; for a transcript, when it ended.
        duration: `45m` or `2h30m`.
        source: "session" or "checkpoint"; older archives have other words.
        continues: the number of the archive that this one continues; None if it begins a conversation.
        reconstructed: the file from which a deleted session was reconstructed; "" for a full archive.
    """

    log: int
    date: str
    session_id: str = ""
    message_count: int = 0
    duration: str = ""
    source: str = ""
    topics: tuple[str, ...] = ()
    continues: int | None = None
    reconstructed: str = ""


class ArchiveSummary(NamedTuple):
    """The summary of a conversation. `decisions` and `actions` are only those that a model found."""

    text: str
    decisions: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()


EDGE_BYTES = 256 * 1024
"""The front matter and summary are within the first so many bytes of an archive, and its tags within the last."""


def archive_name(number: int) -> str:
    """Return the name of an archive file."""
    return f"conversation-{number:03}.md"


def archive_number(name: str) -> int | None:
    """Return the number in the name of an archive file; None if it is none."""
    match = re.fullmatch(r"conversation-\+?(\d{1,10})\.md", name)
    number = int(match[1]) if match else None
    return number if number is not None and number < 1 << 32 else None


def quote(value: str) -> str:
    """Return a value in double quotes, as YAML reads it."""
    escaped = one_line(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def render_header(header: ArchiveHeader) -> str:
    """Return the front matter."""
    lines = [
        "---",
        f"log: {header.log}",
        f"date: {quote(header.date)}",
        f"session_id: {quote(header.session_id)}",
        f"message_count: {header.message_count}",
        f"duration: {quote(header.duration)}",
        f"source: {quote(header.source)}",
        f"topics: [{', '.join(map(quote, header.topics))}]",
    ]
    if header.continues is not None:
        lines.append(f"continues: {header.continues}")
    if header.reconstructed:
        lines.append(f"reconstructed: {quote(header.reconstructed)}")
    return "\n".join([*lines, "---", ""])


def parse_header(text: str) -> ArchiveHeader | None:
    """Return the front matter at the beginning of a text; None without one, or without a number or a date."""
    match = _FRONT_MATTER.match(text)
    if match is None:
        return None
    values: dict[str, str] = {}
    for line in match["block"].splitlines():
        if field := _FIELD.match(line.strip()):
            values.setdefault(field["key"], field["value"].strip())
    if not _LOG.fullmatch(values.get("log", "")) or "date" not in values:
        return None
    return ArchiveHeader(
        log=int(values["log"]),
        date=_unquote(values["date"]),
        session_id=_unquote(values.get("session_id", "")),
        message_count=_number(values.get("message_count", "")) or 0,
        duration=_unquote(values.get("duration", "")),
        source=_unquote(values.get("source", "")),
        topics=tuple(_parse_list(values.get("topics", ""))),
        continues=_number(values.get("continues", "")),
        reconstructed=_unquote(values.get("reconstructed", "")),
    )


def _number(value: str) -> int | None:
    return int(value) if _LOG.fullmatch(value) else None


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == '"':  # noqa: PLR2004
        return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), value[1:-1])
    return value


def _parse_list(value: str) -> Iterator[str]:
    inner = value.removeprefix("[").removesuffix("]").strip()
    if not inner:
        return
    if _QUOTED.match(inner):
        yield from (_unquote(match[0]) for match in _QUOTED.finditer(inner))
    else:
        yield from (part.strip() for part in inner.split(","))


def render_head(header: ArchiveHeader, summary: ArchiveSummary, *, with_lists: bool = True) -> str:
    """Return everything before the first message."""
    title = f"# Conversation {header.log:03}\n\n"
    if header.continues is not None:
        name = archive_name(header.continues)
        title += f"> Continues [{name}]({name}).\n\n"
    if header.reconstructed:
        title += f"> Reconstructed from {header.reconstructed}: the prompts only. The transcript was deleted.\n\n"
    return f"{render_header(header)}\n{_render_summary(summary, with_lists=with_lists)}{title}"


def _render_summary(summary: ArchiveSummary, *, with_lists: bool) -> str:
    text = _safe_summary(summary.text)
    if not text:
        return ""
    parts = [f"## Summary\n\n{text}\n\n"]
    if with_lists and summary.decisions:
        parts.append(f"**Decisions**:\n{_bullets(summary.decisions)}\n")
    if with_lists and summary.actions:
        parts.append(f"**Action Items**:\n{_bullets(summary.actions)}\n")
    return "".join(parts)


def _safe_summary(text: str) -> str:
    """Return a summary whose lines are no headings, rules or fences. Its paragraphs stay."""
    lines = (
        re.sub(r"^([ \t]*)(?=#{1,6} |---|===|\*\*\*|```|~~~)", r"\1\\", line) for line in text.strip().splitlines()
    )
    return "\n".join(lines)


def _bullets(texts: Sequence[str]) -> str:
    return "".join(f"- {one_line(text)}\n" for text in texts)


def render_tail(tags: ConversationTags) -> str:
    """Return everything after the last message. recall-echo writes one empty line even without tags."""
    if not tags:
        return "\n"
    groups = [
        f"**Project**: {tags.project}\n" if tags.project else "",
        f"**Decisions**:\n{_bullets(tags.decisions)}" if tags.decisions else "",
        f"**Action Items**:\n{_bullets(tags.actions)}" if tags.actions else "",
        f"**Files**: {', '.join(tags.files)}\n" if tags.files else "",
        f"**Tools**: {', '.join(tags.tools)}\n" if tags.tools else "",
    ]
    return "\n\n## Tags\n\n" + "\n".join(filter(None, groups))


def find_body(beginning: bytes, ending: bytes, size: int) -> tuple[int, int] | None:
    """Return where the messages begin and end in an archive; None if it no longer has the structure of an archive.

    Args:
        beginning: its first `EDGE_BYTES`.
        ending: its last `EDGE_BYTES`.
        size: its size in bytes.
    """
    text = beginning.decode("latin-1")  # a character for each byte
    front = _FRONT_MATTER.match(text)
    title = _TITLE.search(text, front.end()) if front else None
    if title is None:
        return None
    tags = ending.rfind(_TAGS_START)
    if tags >= 0 and all(_TAGS_LINE.fullmatch(line) for line in ending[tags + len(_TAGS_START) :].split(b"\n")):
        return title.end(), max(title.end(), size - len(ending) + tags)
    # Without tags there is one empty line more than after a message.
    return title.end(), max(
        title.end(), size - (len(ending) - len(ending.rstrip(b"\n"))) + 2
    ) if ending.strip() else size


def read_summary(beginning: str) -> str:
    """Return the text of the summary section in the beginning of an archive; "" without one."""
    start = _SUMMARY.search(beginning)
    title = _TITLE.search(beginning)
    if start is None or (title is not None and title.start() < start.start()):
        return ""
    section = beginning[start.end() : title.start() if title else len(beginning)]
    lists = _LIST_HEADING.search(section)
    return section[: lists.start() if lists else len(section)].strip()
