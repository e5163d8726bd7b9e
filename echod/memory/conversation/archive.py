"""The parts of an archive file: front matter, summary, tags, and messages, byte for byte as recall-echo has them.

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

    ---

    ### User

    text

    > **Read**: `/src/auth.rs`

    <details><summary>Result</summary>
    ...

A line of a text that would look like a part of the archive's own structure gets a backslash, which Markdown does not
show. A fence is longer than every run of backticks in it, and a fence that a text leaves open is closed after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.conversation.digest import ConversationTags
from echod.memory.conversation.model import (
    MAX_TOOL_OUTPUT_CHARACTERS,
    ConversationItem,
    Speaker,
    ToolCall,
    ToolOutput,
    Utterance,
    archive_name,
    one_line,
)

_FRONT_MATTER = lazy_pattern(r"\A\s*---[ \t]*\r?\n(?P<block>.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)
_FIELD = lazy_pattern(r"(?P<key>[A-Za-z_][\w-]*)[ \t]*:[ \t]*(?P<value>.*)")
_QUOTED = lazy_pattern(r'"((?:[^"\\]|\\.)*)"')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_LOG = lazy_pattern(r"\d{1,10}")
_TITLE = lazy_pattern(r"^# Conversation (\d+)[ \t]*\r?\n(?:\n> (?:Continues|Reconstructed)[^\n]*\n)*\n?", re.MULTILINE)
_SUMMARY = lazy_pattern(r"^## Summary[ \t]*$", re.MULTILINE)
_TAGS_START = b"\n\n## Tags\n\n"
_TAGS_LINE = lazy_pattern(rb"\*\*(?:Project|Decisions|Action Items|Files|Tools)\*\*:.*|- .*|")
_MARKUP_START = lazy_pattern(r"^([ \t]*)(?=#{1,6} |---|===|\*\*\*|```|~~~)", re.MULTILINE)
_LIST_HEADING = lazy_pattern(r"^\*\*(?:Decisions|Action Items)\*\*:[ \t]*$", re.MULTILINE)


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


_HEADINGS = {Speaker.USER: "User", Speaker.ASSISTANT: "Assistant"}
_OWN_LINE = r"(?:### (?:User|Assistant|Sub-agent(?:: [^\n]*)?)|## (?:Tags|Summary)|# Conversation \d+)[ \t]*$"
_STRUCTURE = lazy_pattern(rf"^(\\*)(?={_OWN_LINE})", re.MULTILINE)
_ESCAPED = lazy_pattern(rf"^\\(?=\\*{_OWN_LINE})", re.MULTILINE)
_FENCE = lazy_pattern(r"^ {0,3}(?P<marks>`{3,}|~{3,})(?P<info>[^\n]*)$", re.MULTILINE)
_BACKTICKS = lazy_pattern(r"`+")
_REDACTION_MARGIN = 4
"""A secret may cross the place of the cut, so more than what is shown is searched for secrets."""

_CUT_MARK = "\u2026 (truncated)"
_PARTIAL_MARKER = lazy_pattern(r"\[(?:R(?:E(?:D(?:A(?:C(?:T(?:E(?:D(?::[A-Za-z_-]{0,32})?)?)?)?)?)?)?)?)?$")


class Redacted(NamedTuple):
    """A text without secrets, and the kinds of the secrets that were replaced."""

    text: str
    kinds: tuple[str, ...]


RedactText = Callable[[str], Redacted]


def redact_item(item: ConversationItem, redact: RedactText) -> tuple[ConversationItem, tuple[str, ...]]:
    """Return an item without secrets, its output cut to what is shown, and the kinds of the secrets."""
    match item:
        case Utterance(text=text):
            clean = redact(text)
            return item._replace(text=clean.text), clean.kinds
        case ToolCall(target=target, path=path):
            clean, clean_path = redact(target), redact(path) if path else Redacted("", ())
            return item._replace(target=clean.text, path=clean_path.text), clean.kinds
        case ToolOutput(text=text, keep_whole=keep_whole):
            limit = len(text) if keep_whole else MAX_TOOL_OUTPUT_CHARACTERS
            clean = redact(text[: limit * _REDACTION_MARGIN])
            cut = _cut(clean.text, limit, was_cut=len(text) > limit * _REDACTION_MARGIN)
            return item._replace(text=cut), clean.kinds


def _cut(text: str, limit: int, *, was_cut: bool) -> str:
    if len(text) <= limit and not was_cut:
        return text
    return _PARTIAL_MARKER.sub("", text[:limit]) + _CUT_MARK


class BodyWriter:
    """Writes items one after the other. `last_speaker` is whose heading came last; None at the beginning.

    The part of a sub-agent has a heading of its own, and the next item of the conversation gets its heading again.
    """

    def __init__(self, last_speaker: Speaker | None = None) -> None:
        self.last_speaker = last_speaker

    def write(self, items: Iterable[ConversationItem]) -> Iterator[str]:
        """Yield the Markdown of each item."""
        for item in items:
            speaker = item.speaker if isinstance(item, Utterance) else self.last_speaker
            if self.last_speaker is Speaker.SUB_AGENT and not isinstance(item, Utterance):
                speaker = Speaker.ASSISTANT
            yield from self._write_item(item, speaker)

    def write_sub_agent(self, items: Iterable[ConversationItem], title: str | None = None) -> Iterator[str]:
        """Yield the Markdown of items of a sub-agent. A title begins the part of another one."""
        if title is not None or self.last_speaker is not Speaker.SUB_AGENT:
            self.last_speaker = Speaker.SUB_AGENT
            yield f"---\n\n### Sub-agent{f': {one_line(title)}' if title else ''}\n\n"
        for item in items:
            yield from self._write_item(item, Speaker.SUB_AGENT)

    def _write_item(self, item: ConversationItem, speaker: Speaker | None) -> Iterator[str]:
        if speaker is not None and speaker is not self.last_speaker:
            self.last_speaker = speaker
            yield f"---\n\n### {_HEADINGS[speaker]}\n\n"
        match item:
            case Utterance(text=text):
                yield f"{escape_text(text.strip(chr(10)).rstrip())}\n\n"
            case ToolCall(name=name, target=target):
                yield f"> **{_inline(name)}**: {code_span(target)}\n\n"
            case ToolOutput(text=text, is_error=is_error):
                yield _output_block("Error" if is_error else "Result", text.strip("\n"))


def _output_block(label: str, text: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in _BACKTICKS.findall(text)), default=0))
    return f"<details><summary>{label}</summary>\n\n{fence}\n{text}\n{fence}\n\n</details>\n\n"


def code_span(text: str) -> str:
    """Return a text on one line as code, within more backticks than it contains."""
    line = text.replace("\n", " ")
    longest = max((len(run) for run in _BACKTICKS.findall(line)), default=0)
    if not longest:
        return f"`{line}`"
    marks = "`" * (longest + 1)
    return f"{marks} {line} {marks}"


def _inline(text: str) -> str:
    return text.replace("*", "\\*").replace("\n", " ")


def escape_text(text: str) -> str:
    """Return a text that cannot be taken for the structure of the archive. `unescape_text` returns the original."""
    escaped = _STRUCTURE.sub(lambda match: match[1] + "\\", text) if "#" in text else text
    fence = _open_fence(escaped)
    return escaped if fence is None else f"{escaped}\n{fence}"


def unescape_text(text: str) -> str:
    """Return a text without the backslashes that `escape_text` added. A fence that it closed stays closed."""
    return _ESCAPED.sub("", text)


def _open_fence(text: str) -> str | None:
    """Return the marks of a code fence that a text leaves open; None if every one is closed."""
    if "```" not in text and "~~~" not in text:
        return None
    opened: str | None = None
    for match in _FENCE.finditer(text):
        marks, info = match["marks"], match["info"]
        if opened is None:
            if marks[0] != "`" or "`" not in info:
                opened = marks
        elif marks[0] == opened[0] and len(marks) >= len(opened) and not info.strip():
            opened = None
    return opened
