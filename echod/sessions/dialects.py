"""The transcripts that can be read, and the facts in their first records. Light: nothing is redacted here."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol, cast

from echod.files import open_regular
from echod.memory.conversation import claude, codex
from echod.memory.conversation.model import RecordFacts, RecordReading
from echod.sessions.lines import LineReader

COMPRESSED_SUFFIX = ".zst"

LINE_PADDING = b"\x00 \t\r\n\xef\xbb\xbf"
"""Bytes around a record that are no part of it: a crash leaves NULs, an editor a byte order mark."""


class Dialect(Protocol):
    """The records of one program's transcripts."""

    def is_record(self, value: object) -> bool:
        """Return whether a parsed line is a record of such a transcript."""

    def record_facts(self, record: Mapping[str, object]) -> RecordFacts:
        """Return the facts about the session that a record contains."""

    def read_record(self, record: Mapping[str, object]) -> RecordReading:
        """Return what a record adds to the conversation."""


class AgentDialect(NamedTuple):
    """A program and the records of its transcripts."""

    agent: str
    dialect: Dialect


DIALECTS: tuple[AgentDialect, ...] = (AgentDialect("claude-code", claude), AgentDialect("codex", codex))


class UnreadableTranscriptError(Exception):
    """A compressed transcript cannot be decompressed. The message is half a sentence."""


def open_transcript(path: Path) -> BinaryIO:
    """Open a transcript for reading. A compressed one is decompressed into a temporary file.

    Raises:
        OSError: it cannot be read, or is no regular file.
        UnreadableTranscriptError: it is damaged, or the library for its compression is not installed.
    """
    file = open_regular(path)
    if path.suffix != COMPRESSED_SUFFIX:
        return file
    with file:
        return _decompress(file)


def _decompress(file: BinaryIO) -> BinaryIO:
    try:
        import zstandard  # noqa: PLC0415  an extra, and few transcripts are compressed
    except ImportError as error:
        raise UnreadableTranscriptError("it is compressed; install echod-memory[codex] to read it") from error
    target = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115  the caller closes it
    try:
        zstandard.ZstdDecompressor().copy_stream(file, target)
    except zstandard.ZstdError as error:
        target.close()
        raise UnreadableTranscriptError("it is damaged") from error
    target.seek(0)
    return target


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PEEK_LINES, _PEEK_BYTES = 400, 4 << 20


def peek(file: BinaryIO) -> RecordFacts:
    """Return the session and the directory that the first records of a transcript name; "" where they name none."""
    found = RecordFacts()
    reader = LineReader(file, 0)
    for number, line in enumerate(reader.lines()):
        if number == _PEEK_LINES or reader.read_bytes > _PEEK_BYTES or (found.session_id and found.cwd):
            break
        record = None if line.data is None else parse_line(line.data.strip(LINE_PADDING))
        dialect = next((known.dialect for known in DIALECTS if known.dialect.is_record(record)), None)
        if dialect is not None and isinstance(record, dict):
            facts = dialect.record_facts(record)
            found = RecordFacts(found.session_id or facts.session_id, found.cwd or facts.cwd)
    return found


def session_id_of(path: Path, facts: RecordFacts) -> str:
    """Return the id of a session: the name of its transcript if that is one, else what its records name."""
    stem = path.name.removesuffix(".zst").removesuffix(".jsonl")
    if _UUID.fullmatch(stem):
        return stem
    return facts.session_id or stem


def parse_line(text: bytes) -> object:
    """Return the JSON in a line; None if it is none, or is nested without end."""
    try:
        return json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
