r"""Write the items of a conversation as Markdown, byte for byte as recall-echo does, but never ambiguous.

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
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from echod.memory.conversation.model import (
    MAX_TOOL_OUTPUT_CHARACTERS,
    ConversationItem,
    Speaker,
    ToolCall,
    ToolOutput,
    Utterance,
)

_HEADINGS = {Speaker.USER: "User", Speaker.ASSISTANT: "Assistant"}
_OWN_LINE = r"(?:### (?:User|Assistant)|## (?:Tags|Summary)|# Conversation \d+)[ \t]*$"
_STRUCTURE = re.compile(rf"^(\\*)(?={_OWN_LINE})", re.MULTILINE)
_ESCAPED = re.compile(rf"^\\(?=\\*{_OWN_LINE})", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(?P<marks>`{3,}|~{3,})(?P<info>[^\n]*)$", re.MULTILINE)
_BACKTICKS = re.compile(r"`+")
_REDACTION_MARGIN = 4
"""A secret may cross the place of the cut, so more than what is shown is searched for secrets."""

_CUT_MARK = "\u2026 (truncated)"
_PARTIAL_MARKER = re.compile(r"\[(?:R(?:E(?:D(?:A(?:C(?:T(?:E(?:D(?::[A-Za-z_-]{0,32})?)?)?)?)?)?)?)?)?$")


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
    """Writes items one after the other. `last_speaker` is whose heading came last; None at the beginning."""

    def __init__(self, last_speaker: Speaker | None = None) -> None:
        self.last_speaker = last_speaker

    def write(self, items: Iterable[ConversationItem]) -> Iterator[str]:
        """Yield the Markdown of each item."""
        for item in items:
            match item:
                case Utterance(speaker=speaker, text=text):
                    if speaker is not self.last_speaker:
                        self.last_speaker = speaker
                        yield f"---\n\n### {_HEADINGS[speaker]}\n\n"
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
