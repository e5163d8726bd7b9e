"""The values of a conversation: what was said, which tools were used, and how a record of a transcript was read."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from echod.lazy import lazy_pattern

MAX_TOOL_OUTPUT_CHARACTERS = 2_000
"""The output of a tool is cut after so many characters. A prompt is never cut."""

_ESCAPE_SEQUENCE = lazy_pattern(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL = lazy_pattern(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_LINE_END = lazy_pattern(r"\r\n?|\u2028|\u2029|\x85")
_KEY_BYTES = 8


class Speaker(StrEnum):
    """Who wrote a text. `SUB_AGENT`: an agent that the assistant started, or the assistant in the task for it."""

    USER = "user"
    ASSISTANT = "assistant"
    SUB_AGENT = "sub-agent"


class ArchiveOrigin(StrEnum):
    """`session`: the archive of a session that ended or was idle. `checkpoint`: made before the host compacted it."""

    SESSION = "session"
    CHECKPOINT = "checkpoint"


class Utterance(NamedTuple):
    """A text that was said. `typed` is true if the user typed it, and false for a bare command such as `/clear`."""

    speaker: Speaker
    text: str
    typed: bool = True


class ToolCall(NamedTuple):
    """The use of a tool: its name, its target in short, and the path of the file that it works on, if any."""

    name: str
    target: str
    path: str = ""


class ToolOutput(NamedTuple):
    """The output of a tool. `keep_whole` is true if it contains text of the user."""

    text: str
    is_error: bool = False
    keep_whole: bool = False


ConversationItem = Utterance | ToolCall | ToolOutput


class TranscriptMessage(NamedTuple):
    """The part of a conversation that one record of a transcript contains.

    Attributes:
        key: identifies the record. The same record may occur in several transcripts.
        group: records with the same group are parts of one message; "" if the record is a message of its own.
        at: Unix seconds; None if unknown.
        counts: whether it counts as a message.
    """

    key: int
    group: str
    at: float | None
    speaker: Speaker
    items: tuple[ConversationItem, ...]
    counts: bool = True


class QueuedPrompt(NamedTuple):
    """A prompt that the user typed while the agent was working. It usually occurs again as a message."""

    key: int
    text: str
    at: float | None


class Skipped(StrEnum):
    """Why a record adds nothing to the conversation."""

    SIDECHAIN = "sub-agent"
    INJECTED = "injected"
    EMPTY = "empty"
    OTHER = "no message"
    MALFORMED = "malformed"
    TOO_LONG = "too long"
    UNREADABLE = "unreadable sub-agent"
    DUPLICATE = "duplicate"


RecordReading = TranscriptMessage | QueuedPrompt | Skipped


class RecordFacts(NamedTuple):
    """The facts about its session that a record contains; "" or None where it does not."""

    session_id: str = ""
    cwd: str = ""
    at: float | None = None


class NotATranscriptError(ValueError):
    """No line of the file is a record of a transcript. The message is half a sentence."""


def record_key(text: str) -> int:
    """Return the key of a record from its id, or from its content if it has none."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:_KEY_BYTES], "big", signed=True)


def parse_timestamp(value: object) -> float | None:
    """Return an ISO 8601 timestamp, or a number of seconds or milliseconds, as Unix seconds; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _plausible(value / 1000 if abs(value) > _MILLISECONDS_FROM else float(value))
    if not isinstance(value, str) or not value:
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
        return _plausible((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None


_MILLISECONDS_FROM = 100_000_000_000
_LATEST = 32_503_680_000.0  # the year 3000


def _plausible(seconds: float) -> float | None:
    return seconds if 0 < seconds < _LATEST else None


def utc_timestamp(seconds: float) -> str:
    """Return Unix seconds as `2026-03-06T10:30:00Z`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_session_duration(started: float | None, ended: float | None) -> str:
    """Return the length of a session as `0m`, `45m` or `2h30m`; days are hours too; "unknown" without both ends."""
    if started is None or ended is None:
        return "unknown"
    minutes = int(abs(ended - started)) // 60
    return f"{minutes // 60}h{minutes % 60:02}m" if minutes >= 60 else f"{minutes}m"  # noqa: PLR2004


def word_of(value: object) -> str:
    """Return a value that should be a word; "" for anything else."""
    return value if isinstance(value, str) else ""


def clean_text(text: str) -> str:
    """Return a text of a record without terminal control, with plain line ends, and encodable as UTF-8."""
    if "\x1b" in text:
        text = _ESCAPE_SEQUENCE.sub("", text)
    text = _CONTROL.sub("", _LINE_END.sub("\n", text))
    return text.encode("utf-8", "replace").decode("utf-8")


def one_line(text: str) -> str:
    """Return a text on one line, with single spaces."""
    return " ".join(clean_text(text).split())


def shorten(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text, with an ellipsis after a cut."""
    return text if len(text) <= limit else f"{text[:limit]}\u2026"


def archive_name(number: int) -> str:
    """Return the name of an archive file."""
    return f"conversation-{number:03}.md"


def archive_number(name: str) -> int | None:
    """Return the number in the name of an archive file; None if it is none."""
    match = re.fullmatch(r"conversation-\+?(\d{1,10})\.md", name)
    number = int(match[1]) if match else None
    return number if number is not None and number < 1 << 32 else None
